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

/// A checkpoint's folder as CheckpointWriter wrote it. Its files stay open, so the folder may be
/// removed meanwhile. Const functions are thread-safe. Throws StorageError naming the file.
class CheckpointReader {
public:
  /// Checks the manifest, and that every segment exists and has the right size and version.
  explicit CheckpointReader(const std::filesystem::path& folder);

  std::span<const std::byte> header() const { return manifest_.header; }
  std::span<const CheckpointBlob> blobs() const { return manifest_.blobs; } // keys ascend
  const CheckpointBlob* find(const BlobKey& key) const;                     // nullptr: none

  /// Reads the blob into `out`, of exactly blob.place.size bytes, and verifies its checksum.
  void read(const CheckpointBlob& blob, std::span<std::byte> out) const;

  /// Reads and verifies every byte of every file.
  void verify() const;

  /// The files, in the order of manifest().segments.
  std::span<const std::shared_ptr<const SegmentFile>> segments() const { return segments_; }
  const CheckpointManifest& manifest() const { return manifest_; }

private:
  CheckpointManifest manifest_;
  std::vector<std::shared_ptr<const SegmentFile>> segments_;
};

struct CheckpointStatus {
  std::filesystem::path folder;
  std::uint64_t number = 0; // the name of the folder: a step
  std::string damage;       // why it cannot be used; empty: it is valid

  bool valid() const { return damage.empty(); }
};

enum class CheckpointCheck {
  names, // manifest, sizes and versions: milliseconds
  bytes, // every byte: takes the time of reading them
};

/// The checkpoints `root`/<number>/`inside`, newest (greatest number) first; ignores other entries
/// of `root`. Throws StorageError if `root` cannot be listed.
std::vector<CheckpointStatus> list_checkpoints(const std::filesystem::path& root,
                                               const std::filesystem::path& inside,
                                               CheckpointCheck check);

} // namespace troupe::replay
