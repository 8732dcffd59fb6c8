#include "learner/data/formats/tar_index.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "learner/data/pictures/data_error.hpp"

namespace troupe::learner::data {
namespace {

constexpr std::size_t kBlock = 64 << 10;

using Archive = std::unique_ptr<archive, int (*)(archive*)>;

[[noreturn]] void fail(const File& file, std::int64_t position, const std::string& reason) {
  throw DataError(file.path().string() + ": is not a readable tar archive, at byte "
                  + std::to_string(position) + ": " + reason);
}

std::string reason_of(archive* tar) {
  const char* reason = archive_error_string(tar);
  return reason != nullptr ? reason : "it is damaged";
}

/// libarchive's read position in the file. It reads blocks there and skips ahead without reading.
struct Position {
  const File& file;
  std::uint64_t at = 0;
  std::vector<std::byte> block{};
};

la_ssize_t read_block(archive* tar, void* data, const void** block) {
  auto& position = *static_cast<Position*>(data);
  const auto size = std::min<std::uint64_t>(kBlock, position.file.size() - position.at);
  try {
    position.file.read(position.at, size, position.block);
  } catch (const std::exception& error) {
    archive_set_error(tar, EIO, "%s", error.what());
    return -1;
  }
  position.at += size;
  *block = position.block.data();
  return static_cast<la_ssize_t>(size);
}

la_int64_t skip_bytes(archive*, void* data, la_int64_t request) {
  auto& position = *static_cast<Position*>(data);
  const auto left = static_cast<la_int64_t>(position.file.size() - position.at);
  const auto skipped = std::min(request, left);
  position.at += static_cast<std::uint64_t>(skipped);
  return skipped;
}

void open(archive* tar, Position& position) {
  archive_read_support_format_tar(tar);
  archive_read_set_read_callback(tar, read_block);
  archive_read_set_skip_callback(tar, skip_bytes);
  archive_read_set_callback_data(tar, &position);
  if (archive_read_open1(tar) != ARCHIVE_OK)
    fail(position.file, 0, reason_of(tar));
}

} // namespace

std::vector<TarEntry> index_tar(const File& file) {
  Position position{.file = file};
  const Archive tar(archive_read_new(), archive_read_free);
  if (!tar)
    throw std::runtime_error("libarchive could not start: no memory");
  open(tar.get(), position);
  std::vector<TarEntry> entries;
  std::int64_t end = 0; // of the previous entry
  while (true) {
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(tar.get(), &entry);
    if (result == ARCHIVE_EOF)
      break;
    if (result != ARCHIVE_OK)
      fail(file, end, reason_of(tar.get()));
    const auto offset = archive_filter_bytes(tar.get(), 0); // the end of the header
    const auto size = archive_entry_size(entry);
    if (offset < 0 || size < 0 || static_cast<std::uint64_t>(size) > file.size()
        || static_cast<std::uint64_t>(offset) > file.size() - static_cast<std::uint64_t>(size))
      fail(file, offset, "it ends in the middle of a file (truncated?)");
    end = offset + size;
    const char* name = archive_entry_pathname(entry);
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr)
      continue;
    if (name == nullptr || archive_entry_sparse_count(entry) > 0)
      fail(file, offset, "it has a name that cannot be read, or a sparse file");
    entries.push_back({name, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(size)});
  }
  return entries;
}

} // namespace troupe::learner::data
