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
  std::filesystem::path folder; // made if missing
  /// Each segment is an open file. 0: max_disk_bytes / 256, but at least 64 MiB.
  std::uint64_t segment_bytes = 0;
  /// Of all segments, including released blobs; one segment's worth is reserved for compact().
  std::uint64_t max_disk_bytes = std::uint64_t{64} << 30;
  double compact_below = 0.5; // a full segment with a smaller fraction of live bytes is compacted
};

struct SegmentStoreStats {
  std::uint64_t segments = 0;
  std::uint64_t blobs = 0;
  std::uint64_t disk_bytes = 0;                      // of segments, live and released
  std::uint64_t living_bytes = 0;                    // of blobs and their record headers
  std::uint64_t appended_bytes = 0, moved_bytes = 0; // ever, of blobs
};

/// Blobs on disk for the lifetime of this process: a table's data that does not fit into memory.
/// The files have no names; they vanish with the store, even after kill -9.
///
/// Thread-safe; has no thread. append() and compact() write, one at a time, and free the space of
/// segments without live blobs: call them on a thread that may wait for the disk. read() waits for
/// the disk, but not for writers. release() and stats() do not touch the disk. A blob may be
/// released while it is read.
///
/// Throws StorageError; after a failed write the store is unchanged and usable. Throws
/// std::invalid_argument on a reference that was released or belongs to another store.
class SegmentStore {
public:
  /// Throws std::invalid_argument naming a limit out of range, StorageError if the folder cannot be
  /// written to.
  explicit SegmentStore(SegmentStoreConfig config);

  /// Stores a blob of any size; one above segment_bytes gets a separate segment. Throws
  /// StorageError of kind `full` if it would exceed max_disk_bytes; then compact() or release().
  BlobRef append(std::span<const std::byte> blob);

  /// Reads the blob into `out`, of exactly ref.size() bytes, and verifies its checksum.
  void read(const BlobRef& ref, std::span<std::byte> out) const;

  void release(const BlobRef& ref);

  /// Copies live blobs out of mostly released segments, at most `max_bytes` per call (but at least
  /// one blob). The caller takes the new references, then releases the old ones; with the last one
  /// the old segment is freed. Empty: nothing is worth compacting, or there is no space. A damaged
  /// blob stays where it is; reading it throws.
  std::vector<BlobMove> compact(std::uint64_t max_bytes);

  /// Adds the blobs of a checkpoint without copying them; returns their references in the order of
  /// reader.blobs(). The checkpoint's folder may be removed meanwhile; its files are never changed.
  /// They count as disk_bytes until their blobs are released, and may exceed the limit.
  std::vector<BlobRef> adopt(const CheckpointReader& reader);

  SegmentStoreStats stats() const;
  const SegmentStoreConfig& config() const { return config_; } // segment_bytes is not 0

private:
  struct Blob {
    std::uint64_t size = 0;
    std::uint64_t checksum = 0;
    bool stays = false; // compact() copied it already, or cannot
  };
  struct Segment {
    std::shared_ptr<const SegmentFile> file;
    std::uint64_t bytes = 0;        // of the file
    std::uint64_t living_bytes = 0; // of records
    std::uint64_t movable_bytes = 0;
    std::map<std::uint64_t, Blob> blobs; // by offset
  };

  // With append_mutex_ held:
  BlobRef write(std::span<const std::byte> blob, std::uint64_t max_disk_bytes);
  void prepare_segment(std::uint64_t record_bytes, std::uint64_t max_disk_bytes);
  void free_dead_segments();
  bool move_from(std::uint64_t id, std::uint64_t max_bytes, std::uint64_t& moved,
                 std::vector<BlobMove>& moves); // false: more than max_bytes
  // With mutex_ held:
  std::uint64_t mostly_dead_segment() const; // 0: none
  bool holds(const BlobRef& ref) const;
  void forget(const BlobRef& ref); // one that it holds
  void insert(std::uint64_t id, const BlobPlace& place);

  const SegmentStoreConfig config_;
  std::mutex append_mutex_; // taken before mutex_; held while the disk is written
  std::shared_ptr<SegmentFile> open_;
  std::uint64_t open_id_ = 0; // ids begin at 1
  std::uint64_t next_id_ = 1;

  mutable std::mutex mutex_; // guards the members below; never held during disk access
  std::map<std::uint64_t, Segment> segments_;
  std::vector<std::uint64_t> died_; // segments without a live blob, to be freed
  SegmentStoreStats stats_;
};

} // namespace troupe::replay
