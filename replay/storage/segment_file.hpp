#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

namespace troupe::replay {

/// Returns the 64-bit XXH3 of the bytes.
std::uint64_t checksum_of(std::span<const std::byte> bytes);

/// Returns the checksum of a file, which is read in blocks of 1 MiB. Throws std::runtime_error
/// naming it.
std::uint64_t checksum_of_file(const std::filesystem::path& path);

/// The position of a blob in its segment. `offset` (bytes) is the position of the blob itself,
/// after the header of its record.
struct BlobPlace {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t checksum = 0; // of the blob's bytes

  bool operator==(const BlobPlace&) const = default;
};

/// A file that only grows: a header, then records that consist of a header and a blob. Every byte
/// is covered by a checksum.
///
/// header: "TRPSEGMT", version u32, 0 u32, id u64, checksum u64 of these
/// record: size u64, checksum u64 of the blob, checksum u64 of (id, offset, size, checksum); blob
///
/// append() and flush() may be called by one thread at a time, read() and scan() by any threads at
/// any time. Throws StorageError naming the file.
class SegmentFile {
public:
  static constexpr std::uint64_t kHeadBytes = 32;
  static constexpr std::uint64_t kRecordBytes = 24; // header of a record

  /// Creates a file, which must not exist yet.
  static std::shared_ptr<SegmentFile> create(const std::filesystem::path& path, std::uint64_t id);

  /// Creates a file without a name in `folder`. It vanishes with its last owner, even if the
  /// process is killed.
  static std::shared_ptr<SegmentFile> create_unnamed(const std::filesystem::path& folder,
                                                     std::uint64_t id);

  /// Opens an existing file for reading. Throws unless it has this id, size and version.
  static std::shared_ptr<const SegmentFile> open(const std::filesystem::path& path,
                                                 std::uint64_t id, std::uint64_t size);

  ~SegmentFile();
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  /// Appends the whole blob or nothing: after a failure the file has its old length and remains
  /// usable.
  BlobPlace append(std::span<const std::byte> blob);

  /// Waits until all appended bytes are on the disk.
  void flush();

  /// Reads a blob into `out` and verifies its checksum. Throws std::invalid_argument unless `out`
  /// has exactly place.size bytes.
  void read(const BlobPlace& place, std::span<std::byte> out) const;

  /// Reads and verifies every byte; calls `record` for each record in order.
  void scan(const std::function<void(const BlobPlace&)>& record) const;

  std::uint64_t size() const { return end_; } // for the appending thread
  const std::filesystem::path& path() const { return path_; }

private:
  SegmentFile(std::filesystem::path path, int descriptor, std::uint64_t id);
  void write_head();
  void check_head() const;
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;
  std::uint64_t record_checksum(const BlobPlace& place) const;
  std::uint64_t stored_checksum(const BlobPlace& place, std::span<std::byte> buffer) const;
  [[noreturn]] void damaged(const std::string& what) const;

  std::filesystem::path path_; // only for messages if the file has no name
  int descriptor_;
  std::uint64_t id_;
  std::uint64_t end_ = 0;
};

} // namespace troupe::replay
