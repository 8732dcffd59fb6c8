#include "replay/storage/segment_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
// The same functions, but with the best instruction set of the processor.
#include <xxh_x86dispatch.h>
#endif

#include "env/whole_file.hpp"
#include "replay/storage/storage_error.hpp"

namespace troupe::replay {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t kSegmentVersion = 1;
constexpr std::size_t kScanBytes = std::size_t{1} << 20;
constexpr std::uint64_t kHashedBlock = std::uint64_t{1} << 20;

struct SegmentHead {
  std::array<char, 8> magic{'T', 'R', 'P', 'S', 'E', 'G', 'M', 'T'};
  std::uint32_t version = kSegmentVersion;
  std::uint32_t zero = 0;
  std::uint64_t id = 0;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(SegmentHead) == SegmentFile::kHeadBytes);

struct RecordHead {
  std::uint64_t size = 0;
  std::uint64_t checksum = 0;
  std::uint64_t own_checksum = 0;
};
static_assert(sizeof(RecordHead) == SegmentFile::kRecordBytes);

std::uint64_t checksum_of_head(const SegmentHead& head) {
  return ::XXH3_64bits(&head, offsetof(SegmentHead, checksum));
}

std::string at_byte(std::uint64_t offset) {
  return " at byte " + std::to_string(offset);
}

int open_unnamed(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
    return descriptor;
  // This file system does not support O_TMPFILE.
  std::string name = (folder / "segment-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0)
    ::unlink(name.c_str());
  return named;
}

} // namespace

std::uint64_t checksum_of_file(const std::filesystem::path& path) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  if (!state)
    throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  env::FileReader file(path);
  std::vector<std::byte> block(std::min<std::uint64_t>(file.left(), kHashedBlock));
  while (file.left() > 0) {
    const auto size = std::min<std::uint64_t>(file.left(), block.size());
    if (!file.read(block.data(), size))
      throw std::runtime_error(path.string() + " became shorter while it was read");
    XXH3_64bits_update(state.get(), block.data(), size);
  }
  return XXH3_64bits_digest(state.get());
}

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return ::XXH3_64bits(bytes.data(), bytes.size());
}

SegmentFile::SegmentFile(fs::path path, int descriptor, std::uint64_t id)
    : path_(std::move(path)), descriptor_(descriptor), id_(id) {
  if (descriptor_ < 0)
    throw StorageError::of_system(errno, "cannot open " + path_.string());
}

SegmentFile::~SegmentFile() {
  ::close(descriptor_);
}

std::shared_ptr<SegmentFile> SegmentFile::create(const fs::path& path, std::uint64_t id) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  std::shared_ptr<SegmentFile> file(new SegmentFile(path, descriptor, id));
  try {
    file->write_head();
  } catch (...) {
    ::unlink(path.c_str()); // so that a retry is possible
    throw;
  }
  return file;
}

std::shared_ptr<SegmentFile> SegmentFile::create_unnamed(const fs::path& folder, std::uint64_t id) {
  const int descriptor = open_unnamed(folder);
  std::shared_ptr<SegmentFile> file(
      new SegmentFile(folder / ("unnamed segment " + std::to_string(id)), descriptor, id));
  file->write_head();
  return file;
}

std::shared_ptr<const SegmentFile> SegmentFile::open(const fs::path& path, std::uint64_t id,
                                                     std::uint64_t size) {
  // With O_NONBLOCK this does not wait if the path is a pipe.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOENT)
    throw StorageError(StorageError::Kind::damaged,
                       path.string() + " is missing; use an earlier checkpoint");
  std::shared_ptr<SegmentFile> file(new SegmentFile(path, descriptor, id));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0)
    throw StorageError::of_system(errno, "cannot read " + path.string());
  if (!S_ISREG(status.st_mode))
    throw StorageError(StorageError::Kind::foreign, path.string() + " is not a file");
  file->end_ = static_cast<std::uint64_t>(status.st_size);
  if (file->end_ >= kHeadBytes)
    file->check_head(); // comes first, so that a foreign file is not reported as truncated
  if (file->end_ != size)
    file->damaged("has " + std::to_string(file->end_) + " bytes where " + std::to_string(size)
                  + " were written");
  return file;
}

void SegmentFile::write_head() {
  SegmentHead head{.id = id_};
  head.checksum = checksum_of_head(head);
  const ssize_t written = ::pwrite(descriptor_, &head, sizeof head, 0);
  if (written != static_cast<ssize_t>(sizeof head))
    throw StorageError::of_system(written < 0 ? errno : ENOSPC, "cannot write " + path_.string());
  end_ = sizeof head;
}

void SegmentFile::check_head() const {
  SegmentHead head;
  read_at(0, std::as_writable_bytes(std::span(&head, 1)));
  if (head.magic != SegmentHead{}.magic)
    throw StorageError(StorageError::Kind::foreign,
                       path_.string() + " is not a segment of replay data; remove it from there");
  if (head.checksum != checksum_of_head(head))
    damaged("has a head with a wrong checksum");
  if (head.version != kSegmentVersion || head.zero != 0)
    throw StorageError(StorageError::Kind::foreign,
                       path_.string() + " has version " + std::to_string(head.version)
                           + " of the format, this program reads " + std::to_string(kSegmentVersion)
                           + "; use the program that wrote it");
  if (head.id != id_)
    damaged("is segment " + std::to_string(head.id) + " under the name of " + std::to_string(id_));
}

BlobPlace SegmentFile::append(std::span<const std::byte> blob) {
  const BlobPlace place{end_ + kRecordBytes, blob.size(), replay::checksum_of(blob)};
  RecordHead head{place.size, place.checksum, record_checksum(place)};
  const std::uint64_t total = kRecordBytes + blob.size();
  for (std::uint64_t done = 0; done < total;) {
    const std::uint64_t of_head = std::min<std::uint64_t>(done, kRecordBytes);
    const std::uint64_t of_blob = done - of_head;
    std::array<iovec, 2> parts{
        iovec{reinterpret_cast<std::byte*>(&head) + of_head, kRecordBytes - of_head},
        iovec{const_cast<std::byte*>(blob.data()) + of_blob, blob.size() - of_blob}};
    const ssize_t written =
        ::pwritev(descriptor_, parts.data(), 2, static_cast<off_t>(end_ + done));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) {
      const int number = written < 0 ? errno : ENOSPC;
      // If this fails, the next record overwrites the partial one, and the size in a manifest
      // excludes it.
      [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, static_cast<off_t>(end_));
      throw StorageError::of_system(number, "cannot write " + std::to_string(blob.size())
                                                + " bytes to " + path_.string() + at_byte(end_));
    }
    done += static_cast<std::uint64_t>(written);
  }
  end_ += total;
  return place;
}

void SegmentFile::flush() {
  // Removes what a failed append() may have left at the end.
  if (::ftruncate(descriptor_, static_cast<off_t>(end_)) != 0 || ::fsync(descriptor_) != 0)
    throw StorageError::of_system(errno, "cannot write to disk " + path_.string());
}

void SegmentFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw StorageError::of_system(errno, "cannot read " + path_.string() + at_byte(offset));
    if (got == 0)
      damaged("ends" + at_byte(offset) + ", before what was written there");
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void SegmentFile::read(const BlobPlace& place, std::span<std::byte> out) const {
  if (out.size() != place.size)
    throw std::invalid_argument("a blob of " + std::to_string(place.size)
                                + " bytes is read into a buffer of " + std::to_string(out.size())
                                + "; it must have exactly the blob's size");
  read_at(place.offset, out);
  if (replay::checksum_of(out) != place.checksum)
    damaged("differs from what was written in the " + std::to_string(place.size) + " bytes"
            + at_byte(place.offset));
}

void SegmentFile::scan(const std::function<void(const BlobPlace&)>& record) const {
  check_head();
  std::vector<std::byte> buffer(kScanBytes);
  for (std::uint64_t at = kHeadBytes; at < end_;) {
    RecordHead head;
    if (end_ - at < kRecordBytes)
      damaged("ends within a record" + at_byte(at));
    read_at(at, std::as_writable_bytes(std::span(&head, 1)));
    at += kRecordBytes;
    const BlobPlace place{at, head.size, head.checksum};
    if (head.own_checksum != record_checksum(place) || head.size > end_ - at)
      damaged("has a record with a wrong head" + at_byte(at - kRecordBytes));
    if (stored_checksum(place, buffer) != place.checksum)
      damaged("differs from what was written in the " + std::to_string(place.size) + " bytes"
              + at_byte(at));
    record(place);
    at += place.size;
  }
}

std::uint64_t SegmentFile::record_checksum(const BlobPlace& place) const {
  const std::array<std::uint64_t, 4> words{id_, place.offset, place.size, place.checksum};
  return ::XXH3_64bits(words.data(), sizeof words);
}

std::uint64_t SegmentFile::stored_checksum(const BlobPlace& place,
                                           std::span<std::byte> buffer) const {
  const std::unique_ptr<XXH3_state_t, decltype(&::XXH3_freeState)> state(::XXH3_createState(),
                                                                         &::XXH3_freeState);
  ::XXH3_64bits_reset(state.get());
  for (std::uint64_t done = 0; done < place.size;) {
    const auto part = buffer.first(std::min<std::uint64_t>(buffer.size(), place.size - done));
    read_at(place.offset + done, part);
    ::XXH3_64bits_update(state.get(), part.data(), part.size());
    done += part.size();
  }
  return ::XXH3_64bits_digest(state.get());
}

void SegmentFile::damaged(const std::string& what) const {
  throw StorageError(StorageError::Kind::damaged,
                     path_.string() + " is damaged: it " + what
                         + "; resume from a checkpoint (if this is one, from the one before), and "
                           "have the disk checked");
}

} // namespace troupe::replay
