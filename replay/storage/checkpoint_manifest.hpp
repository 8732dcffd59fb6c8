#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replay/storage/segment_file.hpp"

namespace troupe::replay {

/// Identifies a blob of a table's checkpoints. The bytes of a key never change.
struct BlobKey {
  std::uint64_t chunk = 0; // its number in the table
  std::uint64_t low = 0;   // rows [low, high) of it
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

/// The contents of a checkpoint's folder, as its file `manifest` lists them.
struct CheckpointManifest {
  std::uint64_t next_segment = 1;          // above every id of this and earlier checkpoints
  std::vector<CheckpointSegment> segments; // ids ascend
  std::vector<CheckpointBlob> blobs;       // keys ascend
  std::vector<std::byte> header;           // the caller's

  bool operator==(const CheckpointManifest&) const = default;
};

/// "TRPCHECK", version u32, 0 u32, next_segment, the numbers of segments and blobs and the bytes of
/// the header (u64 each); segments; blobs; header; the checksum u64 of all that.
std::vector<std::byte> encode(const CheckpointManifest& manifest);

/// Treats the bytes as untrusted: throws StorageError naming `source` unless all numbers are
/// consistent.
CheckpointManifest parse_manifest(std::span<const std::byte> bytes, const std::string& source);

} // namespace troupe::replay
