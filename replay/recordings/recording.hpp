#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "replay/chunks/chunk.hpp"
#include "replay/chunks/insertion.hpp"
#include "replay/storage/checkpoint_writer.hpp"
#include "replay/writers/writer.hpp"

namespace troupe::replay {

/// What the episodes of a recording consist of.
struct RecordingSpec {
  env::ArraySpec frame;                     // one frame, as in TransitionSpec
  std::vector<env::ArraySpec> vectors = {}; // as in TransitionSpec
  int stack = 1;                            // frames that the recorded policy saw
  int action_size = 0;
  std::vector<std::int64_t> action_choices = {}; // as in TransitionSpec
  /// [action_size] bounds that the environment gives its continuous numbers, which are stored as
  /// -1 and 1; empty: unknown.
  std::vector<double> action_minimum = {}, action_maximum = {};
  std::map<std::string, std::string> about = {}; // for people: "task", "agent", "run"

  bool operator==(const RecordingSpec&) const = default;
};

/// The transitions' frame, stack and actions.
RecordingSpec recording_of(const TransitionSpec& transitions);
/// Throws std::invalid_argument naming `folder` and the difference if an experiment's transitions
/// are of other steps.
void check_fits(const RecordingSpec& recording, const TransitionSpec& transitions,
                const std::filesystem::path& folder);

/// The time steps of an episode, the first one included: rows of frame and vectors, and action,
/// reward and discount of the step that led to them.
class Episode {
public:
  /// Throws std::invalid_argument as check(TransitionSpec) does.
  explicit Episode(const RecordingSpec& spec);

  /// The vectors of an observation, each of the spec's size.
  using Vectors = std::span<const std::span<const std::byte>>;
  /// The first time step; removes what was there.
  void begin(std::span<const std::byte> frame, Vectors vectors = {});
  /// Throws std::invalid_argument on spans of other sizes and numbers that are not finite.
  void append(std::span<const float> action, float reward, float discount,
              std::span<const std::byte> frame, Vectors vectors = {});

  void clear() { rows_ = 0; }

  std::int64_t rows() const { return rows_; }
  std::int64_t steps() const { return rows_ == 0 ? 0 : rows_ - 1; }
  std::span<const std::byte> column(std::int64_t row, TransitionColumn column) const;
  std::span<const std::byte> frame(std::int64_t row) const { return column(row, kFrame); }
  std::size_t vectors() const { return layout_->vectors; }
  std::span<const std::byte> vector(std::int64_t row, std::size_t index) const {
    return at(row, kVectors + index);
  }
  /// Of the step that led to row `row`, which is not the first.
  std::vector<float> action(std::int64_t row) const;
  float reward(std::int64_t row) const { return number(row, kReward); }
  float discount(std::int64_t row) const { return number(row, kDiscount); }

  double total_reward() const;
  bool terminated() const { return steps() > 0 && discount(rows_ - 1) == 0; }

  /// Writes the episode as if an environment had just played it.
  void write(Writer& writer) const;

private:
  friend class RecordingWriter;
  friend class Recording;
  float number(std::int64_t row, TransitionColumn column) const;
  std::span<const std::byte> at(std::int64_t row, std::size_t place) const;
  std::byte* add_row();

  std::shared_ptr<const RowLayout> layout_;
  std::vector<std::byte> bytes_;
  std::int64_t rows_ = 0;
};

/// Puts the insertions of one Writer of transitions together to episodes. One thread.
class EpisodeJoiner {
public:
  explicit EpisodeJoiner(const RecordingSpec& spec) : open_(spec) {}

  /// `ended` is called with each episode that ended. One that a writer abandoned has ended with its
  /// last step.
  void add(const Insertion& insertion, const std::function<void(const Episode&)>& ended);
  const Episode& open() const { return open_; } // the rows of an episode that has not ended

private:
  Episode open_;
};

/// What a recording says of an episode without reading it.
struct EpisodeSummary {
  std::int64_t steps = 0;
  double total_reward = 0;
  bool terminated = false; // false: it was cut

  bool operator==(const EpisodeSummary&) const = default;
};

/// Writes a recording: a folder that appears, complete, with commit(). Until then its files are in
/// `<folder>.partial`, which the next writer of the same folder removes. Columns are compressed;
/// every file has checksums. Throws StorageError.
class RecordingWriter {
public:
  /// `folder` must not exist; its parent must.
  RecordingWriter(std::filesystem::path folder, RecordingSpec spec);

  void add(const Episode& episode); // of at least one step
  std::int64_t episodes() const { return std::ssize(summaries_); }
  void commit();

private:
  RecordingSpec spec_;
  CheckpointWriter writer_;
  ChunkEncoder encoder_{Compression::automatic};
  std::vector<EpisodeSummary> summaries_;
};

/// Reads a recording as untrusted input. Const functions are thread-safe. Throws StorageError
/// naming the file, std::invalid_argument if there is none.
class Recording {
public:
  explicit Recording(const std::filesystem::path& folder);

  const RecordingSpec& spec() const { return spec_; }
  std::span<const EpisodeSummary> episodes() const { return summaries_; }
  std::int64_t steps() const { return steps_; } // of all episodes
  /// Items that these transitions make of episode `i`.
  static std::int64_t items(const TransitionSpec& transitions, const EpisodeSummary& episode);

  Episode read(std::size_t i) const;
  /// Reads and checks everything.
  void verify() const;

private:
  std::filesystem::path folder_;
  CheckpointReader reader_;
  RecordingSpec spec_;
  std::vector<EpisodeSummary> summaries_;
  std::int64_t steps_ = 0;
};

/// Whether the folder holds a recording, not a table or something else. Never throws.
bool is_recording(const std::filesystem::path& folder);

/// Parses the header of a recording's manifest; for Recording and the fuzzer.
std::pair<RecordingSpec, std::vector<EpisodeSummary>>
parse_recording_header(std::span<const std::byte> header, const std::string& source);

} // namespace troupe::replay
