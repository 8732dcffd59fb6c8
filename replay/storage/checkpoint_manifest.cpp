#include "replay/storage/checkpoint_manifest.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "replay/storage/storage_error.hpp"

namespace troupe::replay {

namespace {

constexpr std::uint32_t kManifestVersion = 1;

struct ManifestHead {
  std::array<char, 8> magic{'T', 'R', 'P', 'C', 'H', 'E', 'C', 'K'};
  std::uint32_t version = kManifestVersion;
  std::uint32_t zero = 0;
  std::uint64_t next_segment = 0;
  std::uint64_t segments = 0;
  std::uint64_t blobs = 0;
  std::uint64_t header_bytes = 0;
};

// These structs have the same layout in files and in memory.
static_assert(sizeof(ManifestHead) == 48 && sizeof(CheckpointSegment) == 16
              && sizeof(CheckpointBlob) == 56);
static_assert(std::is_trivially_copyable_v<
                  CheckpointSegment> && std::is_trivially_copyable_v<CheckpointBlob>);

[[noreturn]] void damaged(const std::string& source, const std::string& what) {
  throw StorageError(StorageError::Kind::damaged,
                     source + " is damaged: " + what + "; use the checkpoint before it");
}

template <typename T>
void put_values(std::span<std::byte>& to, std::span<const T> values) {
  if (!values.empty())
    std::memcpy(to.data(), values.data(), values.size_bytes());
  to = to.subspan(values.size_bytes());
}

template <typename T>
void take(std::span<const std::byte>& from, std::span<T> values) {
  if (!values.empty())
    std::memcpy(values.data(), from.data(), values.size_bytes());
  from = from.subspan(values.size_bytes());
}

void check_segments(const CheckpointManifest& manifest, const std::string& source) {
  std::uint64_t above = 0;
  for (const CheckpointSegment& segment : manifest.segments) {
    if (segment.id < above || segment.id >= manifest.next_segment)
      damaged(source, "its segments are out of order");
    above = segment.id + 1;
  }
}

void check_blobs(const CheckpointManifest& manifest, const std::string& source) {
  std::vector<std::array<std::uint64_t, 3>> places; // segment, begin, end
  for (std::size_t i = 0; i < manifest.blobs.size(); ++i) {
    const CheckpointBlob& blob = manifest.blobs[i];
    if (i > 0 && blob.key <= manifest.blobs[i - 1].key)
      damaged(source, "its blobs are out of order");
    if (blob.segment >= manifest.segments.size())
      damaged(source, "a blob is in no segment");
    const std::uint64_t bytes = manifest.segments[blob.segment].bytes;
    if (blob.place.offset < SegmentFile::kHeadBytes + SegmentFile::kRecordBytes
        || blob.place.offset > bytes || blob.place.size > bytes - blob.place.offset)
      damaged(source, "a blob is outside its segment");
    places.push_back({blob.segment, blob.place.offset, blob.place.offset + blob.place.size});
  }
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i)
    if (places[i][0] == places[i - 1][0]
        && places[i][1] - SegmentFile::kRecordBytes < places[i - 1][2])
      damaged(source, "two blobs overlap");
}

} // namespace

std::vector<std::byte> encode(const CheckpointManifest& manifest) {
  const ManifestHead head{.next_segment = manifest.next_segment,
                          .segments = manifest.segments.size(),
                          .blobs = manifest.blobs.size(),
                          .header_bytes = manifest.header.size()};
  std::uint64_t checksum = 0;
  std::vector<std::byte> bytes(sizeof head + std::span(manifest.segments).size_bytes()
                               + std::span(manifest.blobs).size_bytes() + manifest.header.size()
                               + sizeof checksum);
  std::span<std::byte> rest = bytes;
  put_values<ManifestHead>(rest, std::span(&head, 1));
  put_values<CheckpointSegment>(rest, manifest.segments);
  put_values<CheckpointBlob>(rest, manifest.blobs);
  put_values<std::byte>(rest, manifest.header);
  checksum = checksum_of(std::span(bytes).first(bytes.size() - sizeof checksum));
  std::memcpy(rest.data(), &checksum, sizeof checksum);
  return bytes;
}

CheckpointManifest parse_manifest(std::span<const std::byte> bytes, const std::string& source) {
  ManifestHead head;
  std::uint64_t checksum = 0;
  if (bytes.size() < sizeof head + sizeof checksum)
    damaged(source, "it has only " + std::to_string(bytes.size()) + " bytes");
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != ManifestHead{}.magic)
    throw StorageError(StorageError::Kind::foreign,
                       source + " is not the manifest of a replay checkpoint; name its folder");
  auto rest = bytes.last(sizeof checksum);
  take(rest, std::span(&checksum, 1));
  rest = bytes.first(bytes.size() - sizeof checksum);
  if (checksum != checksum_of(rest))
    damaged(source, "it has a wrong checksum");
  if (head.version != kManifestVersion || head.zero != 0)
    throw StorageError(StorageError::Kind::foreign,
                       source + " has version " + std::to_string(head.version)
                           + " of the format, this program reads "
                           + std::to_string(kManifestVersion) + "; use the program that wrote it");
  rest = rest.subspan(sizeof head);
  if (head.segments > rest.size() / sizeof(CheckpointSegment)
      || head.blobs > rest.size() / sizeof(CheckpointBlob) || head.header_bytes > rest.size()
      || head.segments * sizeof(CheckpointSegment) + head.blobs * sizeof(CheckpointBlob)
                 + head.header_bytes
             != rest.size())
    damaged(source, "its counts do not fit its size");
  CheckpointManifest manifest;
  manifest.next_segment = head.next_segment;
  manifest.segments.resize(head.segments);
  manifest.blobs.resize(head.blobs);
  manifest.header.resize(head.header_bytes);
  take(rest, std::span(manifest.segments));
  take(rest, std::span(manifest.blobs));
  take(rest, std::span(manifest.header));
  check_segments(manifest, source);
  check_blobs(manifest, source);
  return manifest;
}

} // namespace troupe::replay
