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

} // namespace troupe::replay
