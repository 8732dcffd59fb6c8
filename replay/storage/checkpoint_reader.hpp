#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "replay/storage/checkpoint_manifest.hpp"

namespace troupe::replay {

/// Reads a checkpoint that CheckpointWriter wrote. Its files stay open, so the folder may be
/// removed while it is in use. Const functions are thread-safe. Throws StorageError naming the
/// file.
class CheckpointReader {
public:
  /// Checks the manifest, and that every segment exists with the right size and version.
  explicit CheckpointReader(const std::filesystem::path& folder);

  std::span<const std::byte> header() const { return manifest_.header; }
  std::span<const CheckpointBlob> blobs() const { return manifest_.blobs; } // by ascending key
  const CheckpointBlob* find(const BlobKey& key) const;                     // nullptr: none

  /// Reads a blob into `out`, which must have exactly blob.place.size bytes, and verifies its
  /// checksum.
  void read(const CheckpointBlob& blob, std::span<std::byte> out) const;

  /// Reads and verifies every byte of every file.
  void verify() const;

  /// The segment files, in the order of manifest().segments.
  std::span<const std::shared_ptr<const SegmentFile>> segments() const { return segments_; }
  const CheckpointManifest& manifest() const { return manifest_; }

private:
  CheckpointManifest manifest_;
  std::vector<std::shared_ptr<const SegmentFile>> segments_;
};

struct CheckpointStatus {
  std::filesystem::path folder;
  std::uint64_t number = 0; // the step in the folder's name
  std::string damage;       // why the checkpoint cannot be used; empty: it is valid

  bool valid() const { return damage.empty(); }
};

enum class CheckpointCheck {
  names, // manifest, sizes and versions: milliseconds
  bytes, // every byte: takes the time of reading all files
};

/// Lists the checkpoints `root`/<number>/`inside`, newest (greatest number) first, and ignores
/// other entries of `root`. Throws StorageError if `root` cannot be listed.
std::vector<CheckpointStatus> list_checkpoints(const std::filesystem::path& root,
                                               const std::filesystem::path& inside,
                                               CheckpointCheck check);

} // namespace troupe::replay
