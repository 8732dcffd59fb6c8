#include "env/npz.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>

namespace troupe::env {

namespace {

using Bytes = std::span<const std::byte>;

[[noreturn]] void fail_npz(const std::string& source, const std::string& what) {
  throw std::runtime_error(source + " is not a readable .npz archive: " + what);
}

/// Deflate packs at most 1032 bytes into one. An archive with a higher ratio has entries that share
/// their bytes, or uses a compression method that .npz files do not.
constexpr std::size_t kMaxExpansion = 1100; // unpacked bytes per byte of the file

/// An archive ends with a record of 22 bytes whose last two give the length of the comment that
/// follows. libarchive does not notice when a part of the comment is missing.
bool is_whole(Bytes file) {
  constexpr std::size_t kEndRecord = 22;
  constexpr std::array kSignature{std::byte{'P'}, std::byte{'K'}, std::byte{5}, std::byte{6}};
  for (std::size_t comment = 0; comment <= 65535 && comment + kEndRecord <= file.size();
       ++comment) {
    const Bytes end = file.last(comment + kEndRecord);
    const std::size_t length =
        std::to_integer<std::size_t>(end[20]) | std::to_integer<std::size_t>(end[21]) << 8;
    if (length == comment && std::equal(kSignature.begin(), kSignature.end(), end.begin()))
      return true;
  }
  return false;
}

/// The entries of an archive, one after another.
class ZipReader {
public:
  ZipReader(Bytes file, const std::string& source) : source_(source), archive_(archive_read_new()) {
    if (!archive_)
      throw std::bad_alloc();
    must(archive_read_support_format_zip_seekable(archive_.get()));
    must(archive_read_open_memory(archive_.get(), file.data(), file.size()));
  }

  /// False at the end.
  bool next() {
    const int result = archive_read_next_header(archive_.get(), &entry_);
    if (result == ARCHIVE_EOF)
      return false;
    must(result);
    return true;
  }

  std::string name() const {
    const char* name = archive_entry_pathname(entry_);
    return name == nullptr ? "" : name;
  }

  /// Unpacks the entry. Memory grows only with the bytes that are really there, whatever size the
  /// archive claims; libarchive checks size and checksum.
  std::vector<std::byte> read(std::size_t most) {
    std::vector<std::byte> bytes;
    const void* block = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const la_int64_t claimed = archive_entry_size_is_set(entry_) ? archive_entry_size(entry_) : 0;
    int result = ARCHIVE_OK;
    while (claimed <= static_cast<la_int64_t>(most)
           && (result = archive_read_data_block(archive_.get(), &block, &size, &offset))
                  == ARCHIVE_OK
           && size <= most - bytes.size()) {
      const auto* begin = static_cast<const std::byte*>(block);
      bytes.insert(bytes.end(), begin, begin + size);
    }
    if (result == ARCHIVE_OK)
      fail_npz(source_, "'" + name() + "' is too large; at most " + std::to_string(most)
                            + " bytes are read");
    if (result != ARCHIVE_EOF)
      must(result);
    return bytes;
  }

private:
  void must(int result) const { // libarchive reports a wrong checksum only as a warning
    if (result == ARCHIVE_OK)
      return;
    const char* why = archive_error_string(archive_.get());
    fail_npz(source_, why == nullptr ? "it is damaged" : why);
  }

  struct Free {
    void operator()(archive* opened) const { archive_read_free(opened); }
  };

  const std::string& source_;
  std::unique_ptr<archive, Free> archive_;
  archive_entry* entry_ = nullptr; // owned by the archive
};

} // namespace

std::map<std::string, NpyArray> parse_npz(Bytes file, const std::string& source,
                                          const NpzLimits& limits) {
  if (file.size() > limits.file_bytes)
    fail_npz(source, "it has " + std::to_string(file.size()) + " bytes; at most "
                         + std::to_string(limits.file_bytes) + " are read");
  if (!is_whole(file))
    fail_npz(source, "it lacks the end record of a zip archive (truncated?)");
  ZipReader zip(file, source);
  std::map<std::string, NpyArray> arrays;
  const std::size_t most = std::min(limits.total_bytes, kMaxExpansion * file.size());
  std::size_t total = 0;
  while (zip.next()) {
    if (arrays.size() == limits.arrays)
      fail_npz(source, "it has more than " + std::to_string(limits.arrays) + " arrays");
    const std::string entry = zip.name();
    if (!entry.ends_with(".npy"))
      fail_npz(source, "'" + entry + "' is not an array (.npy)");
    const std::string name = entry.substr(0, entry.size() - 4);
    const auto bytes = zip.read(std::min(limits.array_bytes, most - total));
    total += bytes.size();
    if (!arrays.emplace(name, parse_npy(bytes, source + ":" + name)).second)
      fail_npz(source, "'" + name + "' is there twice");
  }
  return arrays;
}

std::map<std::string, NpyArray> read_npz(const std::string& path, const NpzLimits& limits) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  if (error || !in)
    throw std::runtime_error(path + " cannot be read: "
                             + (error ? error.message() : std::string("not allowed to open it")));
  if (size > limits.file_bytes)
    fail_npz(path, "it has " + std::to_string(size) + " bytes; at most "
                       + std::to_string(limits.file_bytes) + " are read");
  std::vector<std::byte> bytes(size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (static_cast<std::size_t>(in.gcount()) != size)
    throw std::runtime_error(path + " cannot be read to its end");
  return parse_npz(bytes, path, limits);
}

} // namespace troupe::env
