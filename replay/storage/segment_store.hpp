#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "replay/storage/segment_file.hpp"

namespace troupe::replay {

class CheckpointReader;

/// A blob in a SegmentStore, until it is released.
struct BlobRef {
  std::uint64_t segment = 0;
  BlobPlace place;

  std::uint64_t size() const { return place.size; }
  bool operator==(const BlobRef&) const = default;
};

/// A blob that compact() copied. Both references are valid until released.
struct BlobMove {
  BlobRef from;
  BlobRef to;
};

struct SegmentStoreConfig {
  std::filesystem::path folder; // created if missing
  /// Each segment is an open file. 0: max_disk_bytes / 256, but at least 64 MiB.
  std::uint64_t segment_bytes = 0;
  /// Limit for all segments, including released blobs. The size of one segment is reserved for
  /// compact().
  std::uint64_t max_disk_bytes = std::uint64_t{64} << 30;
  double compact_below = 0.5; // a full segment with a smaller fraction of live bytes is compacted
};

struct SegmentStoreStats {
  std::uint64_t segments = 0;
  std::uint64_t blobs = 0;
  std::uint64_t disk_bytes = 0;   // size of all segments, with live and released blobs
  std::uint64_t living_bytes = 0; // live blobs with their record headers
  std::uint64_t appended_bytes = 0, moved_bytes = 0; // blobs, since the start
};

/// Stores blobs on disk for the lifetime of this process, for table data that does not fit into
/// memory. The files have no names and vanish with the store, even after kill -9.
///
/// Thread-safe, without a thread of its own. append() and compact() write, one at a time, and free
/// the space of segments without live blobs, so call them on a thread that may wait for the disk.
/// read() waits for the disk, but not for writers. release() and stats() do not access the disk. A
/// blob may be released while it is read.
///
/// Throws StorageError; after a failed write the store is unchanged and usable. Throws
/// std::invalid_argument on a reference that was released or belongs to another store.
class SegmentStore {
public:
  /// Throws std::invalid_argument naming a limit out of range, StorageError if the folder cannot be
  /// written to.
  explicit SegmentStore(SegmentStoreConfig config);

  /// Stores a blob of any size; a blob larger than segment_bytes gets a separate segment. Throws
  /// StorageError of kind `full` if max_disk_bytes would be exceeded; then call compact() or
  /// release().
  BlobRef append(std::span<const std::byte> blob);

  /// Reads a blob into `out`, which must have exactly ref.size() bytes, and verifies its checksum.
  void read(const BlobRef& ref, std::span<std::byte> out) const;

  void release(const BlobRef& ref);

  /// Copies live blobs out of mostly released segments, at most `max_bytes` per call (but at least
  /// one blob). The caller adopts the new references and then releases the old ones; with the last
  /// of these the old segment is freed. Returns an empty list if no segment is worth compacting or
  /// there is no space. A damaged blob stays where it is; reading it throws.
  std::vector<BlobMove> compact(std::uint64_t max_bytes);

  /// Adds the blobs of a checkpoint without copying them, and returns their references in the order
  /// of reader.blobs(). The files of the checkpoint are never changed, and its folder may be
  /// removed. They count towards disk_bytes until their blobs are released, and may exceed the
  /// limit.
  std::vector<BlobRef> adopt(const CheckpointReader& reader);

  SegmentStoreStats stats() const;
  /// Returns the configuration with the actual segment_bytes, which is never 0.
  const SegmentStoreConfig& config() const { return config_; }

private:
  struct Blob {
    std::uint64_t size = 0;
    std::uint64_t checksum = 0;
    bool stays = false; // compact() has copied it already, or cannot
  };
  struct Segment {
    std::shared_ptr<const SegmentFile> file;
    std::uint64_t bytes = 0;        // size of the file
    std::uint64_t living_bytes = 0; // live records
    std::uint64_t movable_bytes = 0;
    std::map<std::uint64_t, Blob> blobs; // by offset
  };

  // With append_mutex_ held:
  BlobRef write(std::span<const std::byte> blob, std::uint64_t max_disk_bytes);
  void prepare_segment(std::uint64_t record_bytes, std::uint64_t max_disk_bytes);
  void free_dead_segments();
  bool move_from(std::uint64_t id, std::uint64_t max_bytes, std::uint64_t& moved,
                 std::vector<BlobMove>& moves); // false: stopped at max_bytes
  // With mutex_ held:
  std::uint64_t mostly_dead_segment() const; // 0: none
  bool holds(const BlobRef& ref) const;
  void forget(const BlobRef& ref); // the store must hold it
  void insert(std::uint64_t id, const BlobPlace& place);

  const SegmentStoreConfig config_;
  std::mutex append_mutex_; // taken before mutex_; held while the disk is written
  std::shared_ptr<SegmentFile> open_;
  std::uint64_t open_id_ = 0; // ids start at 1
  std::uint64_t next_id_ = 1;

  mutable std::mutex mutex_; // guards the members below; never held during disk access
  std::map<std::uint64_t, Segment> segments_;
  std::vector<std::uint64_t> died_; // segments without live blobs, to be freed
  SegmentStoreStats stats_;
};

} // namespace troupe::replay
