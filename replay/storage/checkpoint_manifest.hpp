#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replay/storage/segment_file.hpp"

namespace troupe::replay {

/// Identifies a blob in the checkpoints of a table. The bytes of a blob with a given key never
/// change.
struct BlobKey {
  std::uint64_t chunk = 0; // number of the chunk in its table
  std::uint64_t low = 0;   // the blob contains rows [low, high) of the chunk
  std::uint64_t high = 0;

  auto operator<=>(const BlobKey&) const = default;
};

struct CheckpointBlob {
  BlobKey key;
  std::uint64_t segment = 0; // index in CheckpointManifest::segments
  BlobPlace place;

  bool operator==(const CheckpointBlob&) const = default;
};

struct CheckpointSegment {
  std::uint64_t id = 0; // also in the file's name
  std::uint64_t bytes = 0;

  bool operator==(const CheckpointSegment&) const = default;
};

/// The contents of a checkpoint's folder, as listed in its file `manifest`.
struct CheckpointManifest {
  std::uint64_t next_segment = 1;          // greater than every id in this and earlier checkpoints
  std::vector<CheckpointSegment> segments; // by ascending id
  std::vector<CheckpointBlob> blobs;       // by ascending key
  std::vector<std::byte> header;           // the bytes passed to CheckpointWriter::commit()

  bool operator==(const CheckpointManifest&) const = default;
};

/// Encodes a manifest as: "TRPCHECK", version u32, 0 u32, next_segment, the number of segments, the
/// number of blobs, the size of the header (u64 each); segments; blobs; header; a u64 checksum of
/// all of these.
std::vector<std::byte> encode(const CheckpointManifest& manifest);

/// Parses a manifest, treating it as untrusted. Throws StorageError naming `source` unless all
/// numbers are consistent.
CheckpointManifest parse_manifest(std::span<const std::byte> bytes, const std::string& source);

} // namespace troupe::replay
