#include "replay/storage/checkpoint_writer.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "env/whole_file.hpp"
#include "replay/storage/checkpoint_names.hpp"
#include "replay/storage/storage_error.hpp"

namespace troupe::replay {

namespace fs = std::filesystem;

namespace {

void complain(const std::error_code& error, const std::string& what) {
  if (error)
    throw StorageError::of_system(error.value(), what);
}

/// Removes the files that a killed writer has left, and no others.
void clear_remains(const fs::path& partial) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(partial, error)))
    return;
  for (fs::directory_iterator entry(partial, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory()
        || (!name.starts_with(kManifestName) && !name.starts_with("segment-")))
      throw StorageError(StorageError::Kind::foreign,
                         entry->path().string()
                             + " is not part of a checkpoint, and its folder is needed for one; "
                               "move it elsewhere");
  }
  complain(error, "cannot list " + partial.string());
  fs::remove_all(partial, error);
  complain(error, "cannot remove " + partial.string());
}

} // namespace

std::vector<bool> choose_segments_to_move(std::span<const FormerSegment> segments,
                                          const CheckpointConfig& config) {
  std::vector<bool> chosen(segments.size(), false);
  std::uint64_t moved = 0;
  const auto choose = [&](std::size_t i) {
    const bool fits = moved + segments[i].wanted_bytes <= config.max_moved_bytes;
    chosen[i] = fits;
    moved += fits ? segments[i].wanted_bytes : 0;
  };
  std::vector<std::size_t> order(segments.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return segments[a].wanted_bytes < segments[b].wanted_bytes;
  });
  auto left = static_cast<std::uint64_t>(
      std::count_if(segments.begin(), segments.end(),
                    [](const FormerSegment& segment) { return segment.wanted_bytes > 0; }));
  for (const std::size_t i : order) {
    if (segments[i].wanted_bytes == 0)
      continue; // neither linked nor moved
    const double share =
        static_cast<double>(segments[i].wanted_bytes) / static_cast<double>(segments[i].bytes);
    const bool small = segments[i].wanted_bytes < config.segment_bytes / 2;
    if (share < config.move_below || (small && left > config.max_segments))
      choose(i);
    left -= chosen[i] ? 1 : 0;
  }
  return chosen;
}

CheckpointWriter::CheckpointWriter(fs::path folder, const fs::path& previous,
                                   CheckpointConfig config)
    : folder_(std::move(folder)),
      partial_(folder_.string() + ".partial"),
      previous_folder_(previous),
      config_(config) {
  if (!previous.empty()) {
    previous_.emplace(previous);
    kept_.resize(previous_->blobs().size());
    first_id_ = previous_->manifest().next_segment;
  }
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder_, error)))
    throw StorageError(StorageError::Kind::foreign,
                       folder_.string()
                           + " exists already, and a checkpoint is never changed; remove it or "
                             "choose another name");
  clear_remains(partial_);
  fs::create_directory(partial_, error);
  complain(error, "cannot create the folder " + partial_.string());
}

CheckpointWriter::~CheckpointWriter() {
  std::error_code ignored;
  if (!committed_)
    fs::remove_all(partial_, ignored);
}

bool CheckpointWriter::keep(const BlobKey& key) {
  const CheckpointBlob* blob = previous_ ? previous_->find(key) : nullptr;
  if (blob == nullptr)
    return false;
  kept_[static_cast<std::size_t>(blob - previous_->blobs().data())] = true;
  return true;
}

void CheckpointWriter::add(const BlobKey& key, std::span<const std::byte> blob) {
  added_.push_back(append(key, blob));
}

CheckpointWriter::Added CheckpointWriter::append(const BlobKey& key,
                                                 std::span<const std::byte> blob) {
  const std::uint64_t record = SegmentFile::kRecordBytes + blob.size();
  if (new_.empty() || new_.back()->size() + record > config_.segment_bytes) {
    const std::uint64_t id = first_id_ + new_.size();
    new_.push_back(SegmentFile::create(partial_ / segment_name(id), id));
  }
  const BlobPlace place = new_.back()->append(blob);
  return {key, first_id_ + new_.size() - 1, place};
}

void CheckpointWriter::commit(std::span<const std::byte> header) {
  if (previous_)
    take_over();
  for (const std::shared_ptr<SegmentFile>& segment : new_)
    segment->flush();
  write_manifest(manifest(header));
  std::error_code error;
  fs::rename(partial_, folder_, error);
  complain(error, "cannot rename " + partial_.string() + " to " + folder_.string());
  committed_ = true;
  try {
    env::write_folder_to_disk(folder_.has_parent_path() ? folder_.parent_path() : ".");
  } catch (const std::system_error& failed) {
    throw StorageError::of_system(failed.code().value(),
                                  folder_.string()
                                      + " is written but may not survive a power failure");
  }
}

/// Links the segments that are kept, and copies the needed blobs of the others to new segments.
void CheckpointWriter::take_over() {
  const std::span<const CheckpointBlob> blobs = previous_->blobs();
  const std::vector<CheckpointSegment>& former = previous_->manifest().segments;
  std::vector<FormerSegment> segments;
  for (const CheckpointSegment& segment : former)
    segments.push_back({segment.bytes, 0});
  for (std::size_t i = 0; i < blobs.size(); ++i)
    if (kept_[i])
      segments[blobs[i].segment].wanted_bytes += SegmentFile::kRecordBytes + blobs[i].place.size;
  std::vector<bool> moves = choose_segments_to_move(segments, config_);
  for (std::size_t i = 0; i < segments.size(); ++i)
    if (segments[i].wanted_bytes > 0 && !moves[i])
      moves[i] = !link(former[i]);
  std::vector<std::byte> buffer;
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    if (!kept_[i] || !moves[blobs[i].segment])
      continue;
    buffer.resize(blobs[i].place.size);
    previous_->read(blobs[i], buffer);
    added_.push_back(append(blobs[i].key, buffer));
    kept_[i] = false;
  }
}

/// Returns false if a hard link is not possible: on another file system, or if the folder is gone.
bool CheckpointWriter::link(const CheckpointSegment& former) {
  std::error_code error;
  fs::create_hard_link(previous_folder_ / segment_name(former.id),
                       partial_ / segment_name(former.id), error);
  if (error)
    return false;
  linked_.push_back(former);
  return true;
}

CheckpointManifest CheckpointWriter::manifest(std::span<const std::byte> header) const {
  CheckpointManifest made;
  made.next_segment = first_id_ + new_.size();
  made.segments = linked_; // their ids are below first_id_
  for (std::size_t i = 0; i < new_.size(); ++i)
    made.segments.push_back({first_id_ + i, new_[i]->size()});
  const auto index_of = [&](std::uint64_t id) {
    const auto at = std::lower_bound(
        made.segments.begin(), made.segments.end(), id,
        [](const CheckpointSegment& segment, std::uint64_t wanted) { return segment.id < wanted; });
    return static_cast<std::uint64_t>(at - made.segments.begin());
  };
  for (std::size_t i = 0; i < kept_.size(); ++i)
    if (kept_[i]) {
      CheckpointBlob blob = previous_->blobs()[i];
      blob.segment = index_of(previous_->manifest().segments[blob.segment].id);
      made.blobs.push_back(blob);
    }
  for (const Added& blob : added_)
    made.blobs.push_back({blob.key, index_of(blob.segment_id), blob.place});
  const auto by_key = [](const CheckpointBlob& a, const CheckpointBlob& b) {
    return a.key < b.key;
  };
  std::sort(made.blobs.begin(), made.blobs.end(), by_key);
  const auto twice = std::adjacent_find(
      made.blobs.begin(), made.blobs.end(),
      [](const CheckpointBlob& a, const CheckpointBlob& b) { return a.key == b.key; });
  if (twice != made.blobs.end())
    throw std::invalid_argument("rows " + std::to_string(twice->key.low) + " to "
                                + std::to_string(twice->key.high) + " of chunk "
                                + std::to_string(twice->key.chunk)
                                + " are in the checkpoint twice; keep() it or add() it, once");
  made.header.assign(header.begin(), header.end());
  return made;
}

void CheckpointWriter::write_manifest(const CheckpointManifest& manifest) {
  const std::vector<std::byte> bytes = encode(manifest);
  const fs::path path = partial_ / kManifestName;
  try {
    env::WholeFileWriter file(path);
    file.write(bytes.data(), bytes.size());
    file.commit();
  } catch (const std::system_error& error) {
    throw StorageError::of_system(error.code().value(), "cannot write " + path.string());
  }
}

} // namespace troupe::replay
