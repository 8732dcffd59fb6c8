#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "replay/segment_file.hpp"

namespace troupe::replay {

class CheckpointReader;

/// A blob in a SegmentStore, until it is released.
struct BlobRef {
  std::uint64_t segment = 0;
  BlobPlace place;

  std::uint64_t size() const { return place.size; }
  bool operator==(const BlobRef&) const = default;
};

/// A blob that compact() copied. Both are good until released.
struct BlobMove {
  BlobRef from;
  BlobRef to;
};

struct SegmentStoreConfig {
  std::filesystem::path folder; // made if missing
  /// Each segment is a file that is open. 0: max_disk_bytes / 256, but at least 64 MiB.
  std::uint64_t segment_bytes = 0;
  /// Of all segments, the dead parts included; one segment's worth of it is kept for compact().
  std::uint64_t max_disk_bytes = std::uint64_t{64} << 30;
  double compact_below = 0.5; // a full segment with a smaller share of living bytes is compacted
};

struct SegmentStoreStats {
  std::uint64_t segments = 0;
  std::uint64_t blobs = 0;
  std::uint64_t disk_bytes = 0;                      // of segments, living and dead
  std::uint64_t living_bytes = 0;                    // of blobs and the heads of their records
  std::uint64_t appended_bytes = 0, moved_bytes = 0; // ever, of blobs
};

/// Blobs on disk for the time of this process: where a table puts what does not fit into memory.
/// The files have no names; they vanish with the store, also after kill -9.
///
/// It has no thread. Any call may run on any thread beside any other. append() and compact() write,
/// one after the other, and belong on a thread that may wait for the disk; they also free the space
/// of segments that died. read() waits for the disk, but not for writers. release() and stats()
/// touch no disk. A blob that is released while it is read is read well.
///
/// Errors: StorageError. After a failed write the store is as before, and usable. A reference that
/// was released, or is another store's, is std::invalid_argument.
class SegmentStore {
public:
  /// Throws std::invalid_argument naming a limit that makes no sense, StorageError when the folder
  /// cannot be written to.
  explicit SegmentStore(SegmentStoreConfig config);

  /// Stores a blob of any size; one above segment_bytes has a segment of its own. When it would
  /// exceed max_disk_bytes: StorageError of the kind `full`; then compact() or release.
  BlobRef append(std::span<const std::byte> blob);

  /// Into `out`, which has exactly ref.size() bytes; checked.
  void read(const BlobRef& ref, std::span<std::byte> out) const;

  void release(const BlobRef& ref);

  /// Copies living blobs out of mostly dead segments, at most `max_bytes` of them per call (but at
  /// least one blob). The caller takes over the new references, then releases the old ones, and
  /// with the last one the old segment goes. Empty: there is nothing worth it, or no room. A blob
  /// that is damaged stays where it is, and tells whoever reads it.
  std::vector<BlobMove> compact(std::uint64_t max_bytes);

  /// Takes in the blobs of a checkpoint without copying them; their references, in the order of
  /// reader.blobs(). The checkpoint's folder may be removed meanwhile; its files are never changed.
  /// They count as disk_bytes until they die, and may exceed the limit.
  std::vector<BlobRef> adopt(const CheckpointReader& reader);

  SegmentStoreStats stats() const;
  const SegmentStoreConfig& config() const { return config_; } // segment_bytes is not 0

private:
  struct Blob {
    std::uint64_t size = 0;
    std::uint64_t checksum = 0;
    bool stays = false; // was copied by compact() already, or cannot be
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

  mutable std::mutex mutex_; // of what follows; never held while the disk works
  std::map<std::uint64_t, Segment> segments_;
  std::vector<std::uint64_t> died_; // segments without a living blob, to be freed
  SegmentStoreStats stats_;
};

} // namespace troupe::replay
