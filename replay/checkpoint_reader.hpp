#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "replay/checkpoint_manifest.hpp"

namespace troupe::replay {

/// A checkpoint's folder, as CheckpointWriter made it. Its files stay open, so that the folder may
/// be removed meanwhile. const: any threads. Throws StorageError naming the file.
class CheckpointReader {
public:
  /// Checks the manifest, and that every segment is there, of the right size and version.
  explicit CheckpointReader(const std::filesystem::path& folder);

  std::span<const std::byte> header() const { return manifest_.header; }
  std::span<const CheckpointBlob> blobs() const { return manifest_.blobs; } // keys ascend
  const CheckpointBlob* find(const BlobKey& key) const;                     // nullptr: none

  /// Into `out`, which has exactly blob.place.size bytes; checked.
  void read(const CheckpointBlob& blob, std::span<std::byte> out) const;

  /// Reads and checks every byte of every file.
  void verify() const;

  /// For those who take over the files; in the order of manifest().segments.
  std::span<const std::shared_ptr<const SegmentFile>> segments() const { return segments_; }
  const CheckpointManifest& manifest() const { return manifest_; }

private:
  CheckpointManifest manifest_;
  std::vector<std::shared_ptr<const SegmentFile>> segments_;
};

struct CheckpointStatus {
  std::filesystem::path folder;
  std::uint64_t number = 0; // the name of the folder: a step
  std::string damage;       // why it cannot be used; empty: it can

  bool valid() const { return damage.empty(); }
};

enum class CheckpointCheck {
  names, // manifest, sizes and versions: milliseconds
  bytes, // all of it: as long as reading takes
};

/// The checkpoints `root`/<number>/`inside`, newest (greatest number) first. Whatever else lies in
/// `root` is left out. Throws StorageError when `root` cannot be listed.
std::vector<CheckpointStatus> list_checkpoints(const std::filesystem::path& root,
                                               const std::filesystem::path& inside,
                                               CheckpointCheck check);

} // namespace troupe::replay
