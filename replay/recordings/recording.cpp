#include "replay/recordings/recording.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "env/legible.hpp"
#include "replay/replay.pb.h"
#include "replay/storage/checkpoint_names.hpp"
#include "replay/storage/storage_error.hpp"
#include "replay/table/table_config_wire.hpp"

namespace troupe::replay {

namespace fs = std::filesystem;

namespace {

constexpr char kMagic[8] = {'T', 'R', 'P', 'R', 'E', 'C', 'R', 'D'}; // precedes the header
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kVersionWithProbability = 2; // for recordings with log-probabilities

std::vector<std::byte> header_of(const RecordingSpec& spec,
                                 std::span<const EpisodeSummary> episodes) {
  wire::SavedRecording saved;
  saved.set_version(spec.log_probability ? kVersionWithProbability : kVersion);
  saved.set_log_probability(spec.log_probability);
  put(spec.frame, *saved.mutable_frame());
  for (const env::ArraySpec& vector : spec.vectors)
    put(vector, *saved.add_vectors());
  saved.set_stack(spec.stack);
  saved.set_action_size(spec.action_size);
  saved.mutable_action_choices()->Assign(spec.action_choices.begin(), spec.action_choices.end());
  saved.mutable_action_minimum()->Assign(spec.action_minimum.begin(), spec.action_minimum.end());
  saved.mutable_action_maximum()->Assign(spec.action_maximum.begin(), spec.action_maximum.end());
  for (const auto& [key, value] : spec.about) {
    saved.add_about(env::legible(key)); // a header with other bytes could not be read
    saved.add_about(env::legible(value));
  }
  for (const EpisodeSummary& episode : episodes) {
    saved.add_steps(episode.steps);
    saved.add_total_rewards(episode.total_reward);
    saved.mutable_terminated()->push_back(episode.terminated ? '\1' : '\0');
  }
  std::vector<std::byte> out(sizeof kMagic + saved.ByteSizeLong());
  std::memcpy(out.data(), kMagic, sizeof kMagic);
  saved.SerializeToArray(out.data() + sizeof kMagic, static_cast<int>(out.size() - sizeof kMagic));
  return out;
}

BlobKey key_of(std::size_t episode, std::int64_t rows) {
  return {episode, 0, static_cast<std::uint64_t>(rows)};
}

bool has_magic(std::span<const std::byte> header) {
  return header.size() >= sizeof kMagic && std::memcmp(header.data(), kMagic, sizeof kMagic) == 0;
}

} // namespace

void check_fits(const RecordingSpec& recording, const TransitionSpec& transitions,
                const fs::path& folder) {
  RecordingSpec wanted = recording_of(transitions);
  wanted.stack = recording.stack; // single frames are stored, so the stacks may differ
  const auto why =
      difference(Signature(transitions_of(wanted)), Signature(transitions_of(recording)));
  if (!why.empty())
    throw std::invalid_argument("the recording " + folder.string()
                                + " does not fit the experiment's environment: " + why
                                + "; use the environment block with which it was recorded");
}

RecordingWriter::RecordingWriter(fs::path folder, RecordingSpec spec)
    : spec_(std::move(spec)), writer_(std::move(folder), {}) {
  const Episode check(spec_);
}

void RecordingWriter::add(const Episode& episode) {
  if (episode.steps() < 1)
    throw std::invalid_argument("a recording needs episodes of at least one step");
  const auto rows = static_cast<std::uint32_t>(episode.rows());
  Chunk raw(episode.layout_, summaries_.size(), rows);
  std::memcpy(raw.row(0), episode.bytes_.data(), episode.bytes_.size());
  raw.flags()[0] = Chunk::kFirst;
  raw.flags()[rows - 1] = Chunk::kLast;
  writer_.add(key_of(summaries_.size(), rows), encoder_.encode(raw, 0, rows)->packed());
  summaries_.push_back({.steps = episode.steps(),
                        .total_reward = episode.total_reward(),
                        .terminated = episode.terminated()});
}

void RecordingWriter::commit() {
  writer_.commit(header_of(spec_, summaries_));
}

std::pair<RecordingSpec, std::vector<EpisodeSummary>>
parse_recording_header(std::span<const std::byte> header, const std::string& source) {
  const auto fail = [&](StorageError::Kind kind, const std::string& why) {
    throw StorageError(kind, source + " " + why);
  };
  if (!has_magic(header))
    fail(StorageError::Kind::foreign,
         "is not a recording; name a folder that `troupe record` or `troupe dataset import` wrote");
  wire::SavedRecording saved;
  const auto rest = header.subspan(sizeof kMagic);
  if (!saved.ParseFromArray(rest.data(), static_cast<int>(rest.size())))
    fail(StorageError::Kind::damaged, "is damaged: its header cannot be read; record it again");
  if (saved.version() < kVersion || saved.version() > kVersionWithProbability)
    fail(StorageError::Kind::foreign, "is a recording of version " + std::to_string(saved.version())
                                          + "; this program reads " + std::to_string(kVersion)
                                          + " and " + std::to_string(kVersionWithProbability));
  if (saved.log_probability() != (saved.version() == kVersionWithProbability))
    fail(StorageError::Kind::damaged,
         "is damaged: its version contradicts its list of columns; record it again");
  RecordingSpec spec{
      .frame = column_of(saved.frame()),
      .stack = saved.stack(),
      .action_size = saved.action_size(),
      .action_choices = {saved.action_choices().begin(), saved.action_choices().end()},
      .action_minimum = {saved.action_minimum().begin(), saved.action_minimum().end()},
      .action_maximum = {saved.action_maximum().begin(), saved.action_maximum().end()},
      .log_probability = saved.log_probability()};
  for (const wire::Column& vector : saved.vectors())
    spec.vectors.push_back(column_of(vector));
  const auto bounds = static_cast<int>(spec.action_minimum.size());
  if (spec.action_maximum.size() != spec.action_minimum.size()
      || (bounds != 0 && bounds != spec.action_size))
    fail(StorageError::Kind::damaged,
         "is damaged: its numbers of action bounds and action elements differ");
  try {
    const Episode check(spec);
  } catch (const std::invalid_argument& error) {
    fail(StorageError::Kind::damaged, std::string("is damaged: ") + error.what());
  }
  for (int i = 0; i + 1 < saved.about_size(); i += 2)
    spec.about[saved.about(i)] = saved.about(i + 1);
  const int count = saved.steps_size();
  if (saved.total_rewards_size() != count
      || saved.terminated().size() != static_cast<std::size_t>(count))
    fail(StorageError::Kind::damaged, "is damaged: its list of episodes contradicts itself");
  std::vector<EpisodeSummary> episodes;
  for (int i = 0; i < count; ++i) {
    if (saved.steps(i) < 1 || saved.steps(i) > Episode::kMostSteps)
      fail(StorageError::Kind::damaged, "is damaged: episode " + std::to_string(i) + " has "
                                            + std::to_string(saved.steps(i)) + " steps");
    episodes.push_back({.steps = saved.steps(i),
                        .total_reward = saved.total_rewards(i),
                        .terminated = saved.terminated()[static_cast<std::size_t>(i)] != 0});
  }
  return {std::move(spec), std::move(episodes)};
}

namespace {

/// Returns `folder`. Throws std::invalid_argument if it contains no manifest.
const fs::path& checked(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / kManifestName, ignored))
    throw std::invalid_argument(
        folder.string()
        + " is not a recording: it has no file 'manifest'; name a folder that "
          "`troupe record` or `troupe dataset import` wrote");
  return folder;
}

} // namespace

Recording::Recording(const fs::path& folder) : folder_(folder), reader_(checked(folder)) {
  std::tie(spec_, summaries_) = parse_recording_header(reader_.header(), folder.string());
  for (std::size_t i = 0; i < summaries_.size(); ++i) {
    steps_ += summaries_[i].steps;
    if (reader_.find(key_of(i, summaries_[i].steps + 1)) == nullptr)
      throw StorageError(StorageError::Kind::damaged,
                         folder.string() + " is damaged: it lacks episode " + std::to_string(i));
  }
}

Episode Recording::read(std::size_t i) const {
  const auto rows = static_cast<std::uint32_t>(summaries_.at(i).steps + 1);
  const CheckpointBlob& blob = *reader_.find(key_of(i, rows));
  Episode episode(spec_);
  std::vector<std::byte> packed(blob.place.size);
  reader_.read(blob, packed);
  episode.rows_ = rows;
  episode.bytes_.resize(std::size_t{rows} * episode.layout_->row_bytes);
  try {
    CodecScratch scratch;
    Chunk({.layout = episode.layout_, .id = i, .capacity = rows, .low = 0, .high = rows}, packed)
        .decode(0, rows, episode.bytes_.data(), scratch);
  } catch (const StorageError&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw StorageError(StorageError::Kind::damaged, folder_.string() + " is damaged: episode "
                                                        + std::to_string(i) + ": " + error.what());
  }
  return episode;
}

void Recording::verify() const {
  reader_.verify();
  for (std::size_t i = 0; i < summaries_.size(); ++i) {
    const Episode episode = read(i);
    const EpisodeSummary found{.steps = episode.steps(),
                               .total_reward = episode.total_reward(),
                               .terminated = episode.terminated()};
    if (found != summaries_[i])
      throw StorageError(StorageError::Kind::damaged, folder_.string() + " is damaged: episode "
                                                          + std::to_string(i)
                                                          + " is not the one that its list names");
  }
}

bool is_recording(const fs::path& folder) {
  try {
    return has_magic(CheckpointReader(folder).header());
  } catch (const std::exception&) {
    return false;
  }
}

} // namespace troupe::replay
