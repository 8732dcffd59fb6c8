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
  /// A reader keeps every segment file open: choose larger segments above 100 GB.
  std::uint64_t segment_bytes = std::uint64_t{256} << 20;
  /// Blobs move out of a former segment of which a smaller fraction is still needed...
  double move_below = 0.5;
  /// ...and out of the smallest, below half of segment_bytes, of more segments than this...
  std::uint64_t max_segments = 64;
  /// ...but at most this many bytes per checkpoint. If links are not possible, all blobs move.
  std::uint64_t max_moved_bytes = std::uint64_t{256} << 20;
};

/// The cost of a checkpoint.
struct CheckpointCost {
  std::uint64_t blobs_added = 0, blobs_kept = 0;
  std::uint64_t bytes_written = 0; // new blobs, moved blobs, headers and the manifest
  std::uint64_t bytes_moved = 0;   // of blobs, out of former segments
  std::uint64_t bytes_linked = 0;  // of former segments, at no cost
};

/// Writes a checkpoint: a complete folder that never changes. Blobs of the previous checkpoint are
/// hard-linked (or read, verified and written again where links are not possible), so only new
/// blobs cost time and space. Any checkpoint may be removed by `rm -r` at any time, the previous
/// one even while this one is written. All files are written in `<folder>.partial`, which commit()
/// renames; kill -9 leaves at most that folder, and the next writer of this checkpoint removes it.
///
/// Linked checkpoints share files, so damage on the disk affects all of them. To limit it, write a
/// checkpoint without a previous one from time to time, and after a damaged one.
///
/// Any thread, one at a time; waits for the disk. Throws StorageError; then the writer can only be
/// destroyed, and earlier checkpoints are intact.
class CheckpointWriter {
public:
  /// `folder` must not exist; its parent must. `previous`: folder of a checkpoint; empty: none.
  CheckpointWriter(std::filesystem::path folder, const std::filesystem::path& previous,
                   CheckpointConfig config = {});
  ~CheckpointWriter(); // without commit(): leaves nothing
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Keeps the blob of the previous checkpoint. False: that one lacks it; add() it.
  [[nodiscard]] bool keep(const BlobKey& key);

  /// commit() throws std::invalid_argument if a key was added or kept twice.
  void add(const BlobKey& key, std::span<const std::byte> blob);

  /// Flushes everything, then renames the folder; the checkpoint then survives a power failure.
  CheckpointCost commit(std::span<const std::byte> header);

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
  std::vector<bool> kept_; // of previous_->blobs()
  std::vector<Added> added_;
  std::vector<std::shared_ptr<SegmentFile>> new_; // the last one is appended to
  std::vector<CheckpointSegment> linked_;
  std::uint64_t first_id_ = 1; // of new_
  CheckpointCost cost_;
  bool committed_ = false;
};

/// A former segment, for choose_segments_to_move().
struct FormerSegment {
  std::uint64_t bytes = 0;
  std::uint64_t wanted_bytes = 0; // of records
};

/// For each segment: true if its needed blobs are moved instead of linking it (CheckpointConfig).
std::vector<bool> choose_segments_to_move(std::span<const FormerSegment> segments,
                                          const CheckpointConfig& config);

} // namespace troupe::replay
