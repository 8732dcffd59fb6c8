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
  /// Each step has the logarithm of the probability with which its action was played, as
  /// learner::Policy::log_probability() defines it.
  bool log_probability = false;
  std::map<std::string, std::string> about = {}; // for people: "task", "agent", "run"

  bool operator==(const RecordingSpec&) const = default;
};

/// The extra of sequences, float32, from which EpisodeJoiner takes the log-probability of a step.
inline constexpr const char* kPlayedLogProbability = "played_log_probability";

/// The transitions' frame, stack and actions, without log-probabilities.
RecordingSpec recording_of(const TransitionSpec& transitions);
/// Transitions of one step of such episodes.
TransitionSpec transitions_of(const RecordingSpec& recording);

/// The time steps of an episode, the first one included: rows of frame and vectors, and action,
/// reward and discount of the step that led to them.
class Episode {
public:
  static constexpr std::int64_t kMostSteps = std::int64_t{1} << 24;

  /// Throws std::invalid_argument as check(TransitionSpec) does.
  explicit Episode(const RecordingSpec& spec);

  /// The vectors of an observation, each of the spec's size.
  using Vectors = std::span<const std::span<const std::byte>>;
  /// The first time step; removes what was there.
  void begin(std::span<const std::byte> frame, Vectors vectors = {});
  /// Throws std::invalid_argument on spans of other sizes, numbers that are not finite, and if a
  /// log-probability is given that the spec lacks, or lacks where the spec has it.
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
  /// Of the step that led to row `row`, which is not the first.
  std::vector<float> action(std::int64_t row) const;
  float reward(std::int64_t row) const { return number(row, layout_->place(kReward)); }
  float discount(std::int64_t row) const { return number(row, layout_->place(kDiscount)); }
  bool has_log_probability() const { return log_probability_ > 0; }
  float log_probability(std::int64_t row) const { return number(row, log_probability_); }

  double total_reward() const;
  bool terminated() const { return steps() > 0 && discount(rows_ - 1) == 0; }

  /// Writes the episode as if an environment had just played it.
  void write(Writer& writer) const;

private:
  friend class RecordingWriter;
  friend class Recording;
  float number(std::int64_t row, std::size_t place) const;
  std::span<const std::byte> at(std::int64_t row, std::size_t place) const;
  std::byte* add_row();

  std::shared_ptr<const RowLayout> layout_;
  std::size_t log_probability_ = 0; // its column; 0: none
  std::vector<std::byte> bytes_;
  std::int64_t rows_ = 0;
};

/// Puts the insertions of one Writer of transitions together to episodes. Their log-probabilities
/// come from the extra kPlayedLogProbability. One thread.
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

} // namespace troupe::replay
