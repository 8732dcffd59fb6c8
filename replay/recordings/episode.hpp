#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/chunks/chunk.hpp"
#include "replay/chunks/insertion.hpp"
#include "replay/writers/writer.hpp"

namespace troupe::replay {

/// Describes the episodes of a recording.
struct RecordingSpec {
  env::ArraySpec frame;                     // one frame, as in TransitionSpec
  std::vector<env::ArraySpec> vectors = {}; // as in TransitionSpec
  int stack = 1;                            // frames per observation of the recorded policy
  int action_size = 0;
  std::vector<std::int64_t> action_choices = {}; // as in TransitionSpec
  /// [action_size] the environment's bounds on continuous numbers, which are stored scaled to [-1,
  /// 1]; empty: unknown.
  std::vector<double> action_minimum = {}, action_maximum = {};
  /// True if each step has the logarithm of the probability of its action under the recorded
  /// policy, as learner::Policy::log_probability() defines it.
  bool log_probability = false;
  /// Free text, such as "task", "agent", "run". A recording contains it as env::legible() returns
  /// it.
  std::map<std::string, std::string> about = {};

  bool operator==(const RecordingSpec&) const = default;
};

/// The name of the float32 extra from which EpisodeJoiner takes the log-probability of a step.
inline constexpr const char* kPlayedLogProbability = "played_log_probability";

/// Returns a recording spec with the frame, stack and actions of `transitions`, without
/// log-probabilities.
RecordingSpec recording_of(const TransitionSpec& transitions);
/// Returns the spec of 1-step transitions of such episodes.
TransitionSpec transitions_of(const RecordingSpec& recording);

/// The time steps of an episode, including the first one. Each row contains the frame, the vectors,
/// and the action, reward and discount of the step that led to it.
class Episode {
public:
  /// A recording encodes the rows of an episode, one more than its steps, as one column.
  static constexpr std::int64_t kMostSteps = static_cast<std::int64_t>(kMostColumnRows) - 1;

  /// Throws std::invalid_argument as check(TransitionSpec) does.
  explicit Episode(const RecordingSpec& spec);

  /// The vectors of an observation; each must have the size in the spec.
  using Vectors = std::span<const std::span<const std::byte>>;
  /// Removes all rows and adds the first time step.
  void begin(std::span<const std::byte> frame, Vectors vectors = {});
  /// Adds a time step. Continuous components of the action are limited to [-1, 1], which is what an
  /// environment receives. Throws std::invalid_argument if a span has another size than in the
  /// spec, if a number is not finite, or if a log-probability is given although the spec has none,
  /// or missing although the spec has one.
  void append(std::span<const float> action, float reward, float discount,
              std::span<const std::byte> frame, Vectors vectors = {},
              std::optional<float> log_probability = {});

  void clear() { rows_ = 0; }

  std::int64_t rows() const { return rows_; }
  std::int64_t steps() const { return rows_ == 0 ? 0 : rows_ - 1; }
  std::span<const std::byte> column(std::int64_t row, TransitionColumn column) const;
  std::span<const std::byte> frame(std::int64_t row) const { return column(row, kFrame); }
  std::size_t vectors() const { return layout_->vectors; }
  std::span<const std::byte> vector(std::int64_t row, std::size_t index) const {
    return at(row, kVectors + index);
  }
  /// The action, reward and discount of the step that led to row `row`, which must not be the
  /// first.
  std::vector<float> action(std::int64_t row) const;
  float reward(std::int64_t row) const { return number(row, layout_->place(kReward)); }
  float discount(std::int64_t row) const { return number(row, layout_->place(kDiscount)); }
  bool has_log_probability() const { return log_probability_ > 0; }
  float log_probability(std::int64_t row) const { return number(row, log_probability_); }

  double total_reward() const;
  bool terminated() const { return steps() > 0 && discount(rows_ - 1) == 0; }

  /// Writes the episode to `writer` as if an environment had just produced it.
  void write(Writer& writer) const;

private:
  friend class RecordingWriter;
  friend class Recording;
  float number(std::int64_t row, std::size_t place) const;
  std::span<const std::byte> at(std::int64_t row, std::size_t place) const;
  std::byte* add_row();

  std::shared_ptr<const RowLayout> layout_;
  std::size_t log_probability_ = 0;   // column index; 0: none
  std::vector<std::int64_t> choices_; // as in TransitionSpec
  std::vector<std::byte> bytes_;
  std::int64_t rows_ = 0;
};

/// Assembles episodes from the insertions of one Writer of transitions. The log-probabilities come
/// from the extra kPlayedLogProbability. Steps that no item of the writer covers may be missing.
/// Used by one thread at a time.
class EpisodeJoiner {
public:
  explicit EpisodeJoiner(const RecordingSpec& spec) : open_(spec) {}

  /// Adds an insertion and calls `ended` with each episode that it completes. An episode that the
  /// writer abandoned ends with its last step.
  void add(const Insertion& insertion, const std::function<void(const Episode&)>& ended);
  const Episode& open() const { return open_; } // the rows so far of the unfinished episode

private:
  Episode open_;
};

} // namespace troupe::replay
