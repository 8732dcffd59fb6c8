#include "replay/storage/checkpoint_reader.hpp"

#include <algorithm>
#include <system_error>

#include "env/whole_file.hpp"
#include "replay/storage/checkpoint_names.hpp"
#include "replay/storage/storage_error.hpp"

namespace troupe::replay {

namespace fs = std::filesystem;

namespace {

std::vector<std::byte> read_whole(const fs::path& path) {
  try {
    env::FileReader file(path);
    std::vector<std::byte> bytes(file.left());
    if (file.read(bytes.data(), bytes.size()))
      return bytes;
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::no_such_file_or_directory
        && error.code() != std::errc::not_a_directory)
      throw StorageError::of_system(error.code().value(), "cannot read " + path.string());
    throw StorageError(StorageError::Kind::damaged,
                       path.string() + " is missing: " + path.parent_path().string()
                           + " is not a complete checkpoint; use the one before it");
  }
  throw StorageError(StorageError::Kind::damaged,
                     path.string() + " shrank while it was read; use the checkpoint before it");
}

} // namespace

CheckpointReader::CheckpointReader(const fs::path& folder) {
  const fs::path path = folder / kManifestName;
  manifest_ = parse_manifest(read_whole(path), path.string());
  for (const CheckpointSegment& segment : manifest_.segments)
    segments_.push_back(
        SegmentFile::open(folder / segment_name(segment.id), segment.id, segment.bytes));
}

const CheckpointBlob* CheckpointReader::find(const BlobKey& key) const {
  const auto at = std::lower_bound(
      manifest_.blobs.begin(), manifest_.blobs.end(), key,
      [](const CheckpointBlob& blob, const BlobKey& wanted) { return blob.key < wanted; });
  return at != manifest_.blobs.end() && at->key == key ? &*at : nullptr;
}

void CheckpointReader::read(const CheckpointBlob& blob, std::span<std::byte> out) const {
  segments_.at(blob.segment)->read(blob.place, out);
}

void CheckpointReader::verify() const {
  std::vector<std::vector<BlobPlace>> places(segments_.size());
  for (const CheckpointBlob& blob : manifest_.blobs)
    places[blob.segment].push_back(blob.place);
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const auto by_offset = [](const BlobPlace& a, const BlobPlace& b) {
      return a.offset < b.offset;
    };
    std::sort(places[i].begin(), places[i].end(), by_offset);
    auto next = places[i].begin();
    segments_[i]->scan([&](const BlobPlace& place) {
      if (next != places[i].end() && *next == place)
        ++next; // other records were released before this checkpoint
    });
    if (next != places[i].end())
      throw StorageError(StorageError::Kind::damaged,
                         segments_[i]->path().string() + " has no such blob at byte "
                             + std::to_string(next->offset)
                             + " as the manifest says; use the checkpoint before it");
  }
}

} // namespace troupe::replay
