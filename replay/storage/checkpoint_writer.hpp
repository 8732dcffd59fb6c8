#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "replay/storage/checkpoint_reader.hpp"

namespace troupe::replay {

struct CheckpointConfig {
  /// A reader keeps every segment file open, so use larger segments for checkpoints above 100 GB.
  std::uint64_t segment_bytes = std::uint64_t{256} << 20;
  /// Blobs are moved out of a former segment if less than this fraction of it is still needed...
  double move_below = 0.5;
  /// ...and, if there are more segments than this, out of the smallest ones below half of
  /// segment_bytes...
  std::uint64_t max_segments = 64;
  /// ...but at most this many bytes per checkpoint. If hard links are not possible, all blobs are
  /// moved.
  std::uint64_t max_moved_bytes = std::uint64_t{256} << 20;
};

/// Writes a checkpoint: a complete folder that never changes. Blobs of the previous checkpoint are
/// hard-linked (or, where links are not possible, read, verified and written again), so only new
/// blobs cost time and space. Any checkpoint may be removed with `rm -r` at any time, the previous
/// one even while this one is written. All files are written to `<folder>.partial`, which commit()
/// renames. After kill -9 at most that folder remains, and the next writer of this checkpoint
/// removes it.
///
/// Linked checkpoints share files, so damage on the disk affects all of them. To limit it, write a
/// checkpoint without a previous one from time to time, and whenever the previous one is damaged.
///
/// May be used on any thread, by one at a time; waits for the disk. Throws StorageError; after that
/// the writer can only be destroyed, and earlier checkpoints are intact.
class CheckpointWriter {
public:
  /// `folder` must not exist, but its parent must. `previous` is the folder of a checkpoint; empty:
  /// none.
  CheckpointWriter(std::filesystem::path folder, const std::filesystem::path& previous,
                   CheckpointConfig config = {});
  ~CheckpointWriter(); // without commit(), leaves nothing behind
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Keeps a blob of the previous checkpoint. Returns false if that does not contain it; then call
  /// add().
  [[nodiscard]] bool keep(const BlobKey& key);

  /// Adds a new blob. commit() throws std::invalid_argument if a key was added or kept twice.
  void add(const BlobKey& key, std::span<const std::byte> blob);

  /// Flushes all files and renames the folder. After that the checkpoint survives a power failure.
  void commit(std::span<const std::byte> header);

private:
  struct Added {
    BlobKey key;
    std::uint64_t segment_id;
    BlobPlace place;
  };
  Added append(const BlobKey& key, std::span<const std::byte> blob);
  void take_over();
  bool link(const CheckpointSegment& former);
  CheckpointManifest manifest(std::span<const std::byte> header) const;
  void write_manifest(const CheckpointManifest& manifest);

  std::filesystem::path folder_;
  std::filesystem::path partial_;
  std::filesystem::path previous_folder_;
  CheckpointConfig config_;
  std::optional<CheckpointReader> previous_;
  std::vector<bool> kept_; // for each of previous_->blobs()
  std::vector<Added> added_;
  std::vector<std::shared_ptr<SegmentFile>> new_; // the last one is open for appending
  std::vector<CheckpointSegment> linked_;
  std::uint64_t first_id_ = 1; // id of new_[0]
  bool committed_ = false;
};

/// A former segment, for choose_segments_to_move().
struct FormerSegment {
  std::uint64_t bytes = 0;
  std::uint64_t wanted_bytes = 0; // bytes of needed records
};

/// Returns for each segment whether its needed blobs are moved (true) or the segment is linked; see
/// CheckpointConfig.
std::vector<bool> choose_segments_to_move(std::span<const FormerSegment> segments,
                                          const CheckpointConfig& config);

} // namespace troupe::replay
