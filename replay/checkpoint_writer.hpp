#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "replay/checkpoint_reader.hpp"

namespace troupe::replay {

struct CheckpointConfig {
  /// Each is a file that a reader has open: for above 100 GB choose larger ones.
  std::uint64_t segment_bytes = std::uint64_t{256} << 20;
  /// Blobs move out of a former segment of which a smaller share is still wanted...
  double move_below = 0.5;
  /// ...and out of the smallest, below half of segment_bytes, of more segments than this...
  std::uint64_t max_segments = 64;
  /// ...but at most so many bytes in one checkpoint. Where links are not possible all move.
  std::uint64_t max_moved_bytes = std::uint64_t{256} << 20;
};

/// What a checkpoint took. bytes_written is all that went to the disk but names.
struct CheckpointCost {
  std::uint64_t blobs_added = 0, blobs_kept = 0;
  std::uint64_t bytes_written = 0; // new blobs, moved blobs, heads and the manifest
  std::uint64_t bytes_moved = 0;   // of blobs, out of former segments
  std::uint64_t bytes_linked = 0;  // of former segments, at no cost
};

/// Writes a checkpoint: a folder of its own that is complete and never changes. What the former
/// checkpoint has is linked (hard links; read, checked and written again where there are none), so
/// that only new blobs cost time and room, and any checkpoint may be removed by `rm -r` at any
/// time, the former one even while this is written. All is written in `<folder>.partial` which
/// commit() renames; kill -9 leaves at most that, and the next writer of this folder clears it.
///
/// Since linked checkpoints share files, damage on the disk to one damages them all: who fears that
/// writes one in so many without a previous, and so does who met a previous that is damaged.
///
/// Any thread, one at a time; it waits for the disk. Throws StorageError; then the writer is of no
/// more use but to be destroyed, and what was there before is intact.
class CheckpointWriter {
public:
  /// `folder` must not exist, its parent must. `previous`: a checkpoint's folder, or empty: none.
  CheckpointWriter(std::filesystem::path folder, const std::filesystem::path& previous,
                   CheckpointConfig config = {});
  ~CheckpointWriter(); // without commit(): leaves nothing
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Takes the blob over from the previous checkpoint. False: that one does not have it, add() it.
  [[nodiscard]] bool keep(const BlobKey& key);

  /// A key once; std::invalid_argument by commit() otherwise.
  void add(const BlobKey& key, std::span<const std::byte> blob);

  /// Everything to the disk, then the name; after it the checkpoint survives a power cut.
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

/// Which of them should not be linked but have their wanted blobs moved; by index. See
/// CheckpointConfig.
std::vector<bool> choose_segments_to_move(std::span<const FormerSegment> segments,
                                          const CheckpointConfig& config);

} // namespace troupe::replay
