#include "replay/storage/segment_store.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "replay/storage/checkpoint_reader.hpp"
#include "replay/storage/storage_error.hpp"

namespace troupe::replay {

namespace {

constexpr std::uint64_t kMinSegmentBytes = 4096;
constexpr std::uint64_t kUsualSegments = 256;
// The default limit of many systems is 1024 open files.
constexpr std::uint64_t kMaxSegments = 4096;

std::uint64_t record_bytes(std::uint64_t blob_bytes) {
  return SegmentFile::kRecordBytes + blob_bytes;
}

[[noreturn]] void refuse_blob(const BlobRef& ref, const char* verb) {
  throw std::invalid_argument(
      "the blob at byte " + std::to_string(ref.place.offset) + " of segment "
      + std::to_string(ref.segment) + " cannot be " + verb
      + ": the store does not hold it; it was released, or belongs to another");
}

SegmentStoreConfig checked(SegmentStoreConfig config) {
  const auto complain = [](const std::string& key, const std::string& value,
                           const std::string& rule) {
    throw std::invalid_argument("the segment store's " + key + " is " + value + "; " + rule);
  };
  if (config.folder.empty())
    complain("folder", "empty", "name a folder on a disk with room");
  if (config.segment_bytes == 0)
    config.segment_bytes =
        std::min(std::max(config.max_disk_bytes / kUsualSegments, std::uint64_t{64} << 20),
                 std::max(config.max_disk_bytes / 4, kMinSegmentBytes));
  if (config.segment_bytes < kMinSegmentBytes)
    complain("segment_bytes", std::to_string(config.segment_bytes), "it must be at least 4096");
  if (config.max_disk_bytes / 2 < config.segment_bytes)
    complain("max_disk_bytes", std::to_string(config.max_disk_bytes),
             "it must be at least twice segment_bytes, " + std::to_string(config.segment_bytes)
                 + "; raise it or lower that");
  if (config.max_disk_bytes / config.segment_bytes > kMaxSegments)
    complain("segment_bytes", std::to_string(config.segment_bytes),
             "max_disk_bytes, " + std::to_string(config.max_disk_bytes) + ", would need more than "
                 + std::to_string(kMaxSegments) + " open files; raise it, or leave it at 0");
  if (!(config.compact_below >= 0 && config.compact_below < 1))
    complain("compact_below", std::to_string(config.compact_below),
             "it must be at least 0 and below 1");
  return config;
}

} // namespace

SegmentStore::SegmentStore(SegmentStoreConfig config) : config_(checked(std::move(config))) {
  std::error_code error;
  std::filesystem::create_directories(config_.folder, error);
  if (error)
    throw StorageError::of_system(error.value(), "cannot make " + config_.folder.string());
  // Finds out now, not in an hour, if the folder cannot be written.
  prepare_segment(0, config_.max_disk_bytes);
}

BlobRef SegmentStore::append(std::span<const std::byte> blob) {
  const std::lock_guard writing(append_mutex_);
  free_dead_segments();
  const BlobRef ref = write(blob, config_.max_disk_bytes - config_.segment_bytes);
  const std::lock_guard lock(mutex_);
  stats_.appended_bytes += blob.size();
  return ref;
}

void SegmentStore::read(const BlobRef& ref, std::span<std::byte> out) const {
  std::shared_ptr<const SegmentFile> file;
  {
    const std::lock_guard lock(mutex_);
    if (!holds(ref))
      refuse_blob(ref, "read");
    file = segments_.at(ref.segment).file;
  }
  file->read(ref.place, out);
}

void SegmentStore::release(const BlobRef& ref) {
  const std::lock_guard lock(mutex_);
  if (!holds(ref))
    refuse_blob(ref, "released");
  forget(ref);
}

std::vector<BlobMove> SegmentStore::compact(std::uint64_t max_bytes) {
  const std::lock_guard writing(append_mutex_);
  free_dead_segments();
  std::vector<BlobMove> moves;
  std::uint64_t moved = 0;
  try {
    for (bool more = true; more;) {
      std::uint64_t id = 0;
      {
        const std::lock_guard lock(mutex_);
        id = mostly_dead_segment();
      }
      more = id != 0 && move_from(id, max_bytes, moved, moves);
    }
  } catch (const StorageError& error) {
    if (moves.empty() && error.kind() != StorageError::Kind::full)
      throw;
  }
  return moves;
}

std::vector<BlobRef> SegmentStore::adopt(const CheckpointReader& reader) {
  const std::lock_guard writing(append_mutex_);
  const std::lock_guard lock(mutex_);
  const std::uint64_t first = next_id_;
  next_id_ += reader.segments().size();
  std::vector<BlobRef> refs;
  refs.reserve(reader.blobs().size());
  for (const CheckpointBlob& blob : reader.blobs()) {
    const std::shared_ptr<const SegmentFile>& file = reader.segments()[blob.segment];
    const auto [segment, is_new] = segments_.try_emplace(first + blob.segment);
    if (is_new) {
      segment->second.file = file;
      segment->second.bytes = file->size();
      stats_.disk_bytes += file->size();
      ++stats_.segments;
    }
    insert(first + blob.segment, blob.place);
    refs.push_back({first + blob.segment, blob.place});
  }
  return refs;
}

SegmentStoreStats SegmentStore::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

BlobRef SegmentStore::write(std::span<const std::byte> blob, std::uint64_t max_disk_bytes) {
  prepare_segment(record_bytes(blob.size()), max_disk_bytes);
  const BlobPlace place = open_->append(blob);
  const std::lock_guard lock(mutex_);
  segments_.at(open_id_).bytes += record_bytes(place.size);
  stats_.disk_bytes += record_bytes(place.size);
  insert(open_id_, place);
  return {open_id_, place};
}

void SegmentStore::prepare_segment(std::uint64_t record_bytes, std::uint64_t max_disk_bytes) {
  const bool fits = open_
                    && (open_->size() == SegmentFile::kHeadBytes
                        || (record_bytes <= config_.segment_bytes
                            && open_->size() <= config_.segment_bytes - record_bytes));
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t more = record_bytes + (fits ? 0 : SegmentFile::kHeadBytes);
    if (more > max_disk_bytes || stats_.disk_bytes > max_disk_bytes - more)
      throw StorageError(StorageError::Kind::full,
                         "no room for " + std::to_string(more) + " bytes in "
                             + config_.folder.string() + ": max_disk_bytes is "
                             + std::to_string(config_.max_disk_bytes) + ", of which "
                             + std::to_string(stats_.disk_bytes) + " are taken ("
                             + std::to_string(stats_.disk_bytes - stats_.living_bytes)
                             + " by what was released) and " + std::to_string(config_.segment_bytes)
                             + " are kept for compaction; raise max_disk_bytes, or store less");
  }
  if (fits)
    return;
  open_ = SegmentFile::create_unnamed(config_.folder, next_id_);
  open_id_ = next_id_++;
  const std::lock_guard lock(mutex_);
  Segment& segment = segments_[open_id_];
  segment.file = open_;
  segment.bytes = SegmentFile::kHeadBytes;
  stats_.disk_bytes += SegmentFile::kHeadBytes;
  ++stats_.segments;
}

void SegmentStore::free_dead_segments() {
  // Closed after the lock is released, because closing takes time.
  std::vector<std::shared_ptr<const SegmentFile>> files;
  const std::lock_guard lock(mutex_);
  for (const std::uint64_t id : died_) {
    const auto segment = segments_.find(id);
    if (segment == segments_.end() || !segment->second.blobs.empty())
      continue; // the open segment may have received new blobs
    if (id == open_id_) {
      open_.reset();
      open_id_ = 0;
    }
    stats_.disk_bytes -= segment->second.bytes;
    --stats_.segments;
    files.push_back(std::move(segment->second.file));
    segments_.erase(segment);
  }
  died_.clear();
}

bool SegmentStore::move_from(std::uint64_t id, std::uint64_t max_bytes, std::uint64_t& moved,
                             std::vector<BlobMove>& moves) {
  std::vector<BlobRef> refs;
  std::shared_ptr<const SegmentFile> file;
  bool all = true;
  {
    const std::lock_guard lock(mutex_);
    const Segment& segment = segments_.at(id);
    file = segment.file;
    for (const auto& [offset, blob] : segment.blobs) {
      if (blob.stays)
        continue;
      if (moved > 0 && moved + blob.size > max_bytes) {
        all = false;
        break;
      }
      moved += blob.size;
      refs.push_back({id, {offset, blob.size, blob.checksum}});
    }
  }
  std::vector<std::byte> buffer;
  for (const BlobRef& from : refs) {
    buffer.resize(from.size());
    bool whole = true;
    try {
      file->read(from.place, buffer);
    } catch (const StorageError&) {
      whole = false; // read() reports the error
    }
    const BlobRef to = whole ? write(buffer, config_.max_disk_bytes) : from;
    const std::lock_guard lock(mutex_);
    const auto segment = segments_.find(id);
    const auto blob = segment->second.blobs.find(from.place.offset);
    if (blob == segment->second.blobs.end()) { // released meanwhile
      if (whole)
        forget(to);
      continue;
    }
    blob->second.stays = true;
    segment->second.movable_bytes -= record_bytes(from.size());
    if (whole)
      moves.push_back({from, to});
    stats_.moved_bytes += whole ? from.size() : 0;
  }
  return all;
}

std::uint64_t SegmentStore::mostly_dead_segment() const {
  std::uint64_t found = 0;
  double least = config_.compact_below;
  for (const auto& [id, segment] : segments_) {
    const double share =
        static_cast<double>(segment.living_bytes) / static_cast<double>(segment.bytes);
    if (id != open_id_ && segment.movable_bytes > 0 && share < least) {
      found = id;
      least = share;
    }
  }
  return found;
}

bool SegmentStore::holds(const BlobRef& ref) const {
  const auto segment = segments_.find(ref.segment);
  if (segment == segments_.end())
    return false;
  const auto blob = segment->second.blobs.find(ref.place.offset);
  return blob != segment->second.blobs.end() && blob->second.size == ref.place.size
         && blob->second.checksum == ref.place.checksum;
}

void SegmentStore::forget(const BlobRef& ref) {
  Segment& segment = segments_.at(ref.segment);
  const auto blob = segment.blobs.find(ref.place.offset);
  segment.living_bytes -= record_bytes(ref.size());
  segment.movable_bytes -= blob->second.stays ? 0 : record_bytes(ref.size());
  stats_.living_bytes -= record_bytes(ref.size());
  --stats_.blobs;
  segment.blobs.erase(blob);
  if (segment.blobs.empty())
    died_.push_back(ref.segment);
}

void SegmentStore::insert(std::uint64_t id, const BlobPlace& place) {
  Segment& segment = segments_.at(id);
  segment.blobs.emplace(place.offset, Blob{place.size, place.checksum});
  segment.living_bytes += record_bytes(place.size);
  segment.movable_bytes += record_bytes(place.size);
  stats_.living_bytes += record_bytes(place.size);
  ++stats_.blobs;
}

} // namespace troupe::replay
