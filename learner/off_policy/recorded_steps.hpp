#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/agents/parts/observed.hpp"
#include "replay/recordings/recording.hpp"

namespace troupe::learner {

/// Rows of recorded episodes, numbered consecutively over all episodes. Const functions are
/// thread-safe.
class RecordedSteps {
public:
  /// Throws std::invalid_argument unless there is an episode, each episode has a step, either all
  /// or none have log-probabilities, and each choice is one of the transitions' alternatives.
  RecordedSteps(std::vector<replay::Episode> episodes, replay::TransitionSpec transitions);

  const replay::TransitionSpec& transitions() const { return transitions_; }
  std::int64_t rows() const { return starts_.back(); }
  std::int64_t episodes() const { return static_cast<std::int64_t>(episodes_.size()); }
  std::int64_t steps() const { return rows() - episodes(); }
  std::int64_t first_row(std::int64_t episode) const { return starts_[at(episode)]; }
  std::int64_t last_row(std::int64_t episode) const { return starts_[at(episode) + 1] - 1; }
  std::int64_t longest() const; // steps of the longest episode
  /// The rows of the episode at which a step starts: all but the last.
  std::vector<std::int64_t> step_rows(std::int64_t episode) const;

  /// Columns [rows]: the row's episode, its index in the episode, and the step that starts at the
  /// row (zeros in the last row of an episode). Continuous actions are clipped to [-1, 1].
  const at::Tensor& episode() const { return episode_; } // int64
  const at::Tensor& time() const { return time_; }       // float32
  const at::Tensor& action() const { return action_; }   // float32 [rows, action size]
  const at::Tensor& reward() const { return reward_; }
  const at::Tensor& discount() const { return discount_; } // as the environment gave it
  /// The log-probability with which the recorded policy played the action; undefined if it was not
  /// recorded.
  const at::Tensor& log_probability() const { return log_probability_; }

  Observed observed(std::span<const std::int64_t> rows) const;
  /// Storage that Observations refer to.
  struct Place {
    std::vector<const std::byte*> frames;
    std::vector<const std::byte*> vectors;
  };
  /// The rows' observations as a policy sees them, without a recurrent state. Valid until `place`
  /// changes.
  Observations observations(std::span<const std::int64_t> rows, Place& place) const;
  /// Clips the continuous components of actions [n, action size] to [-1, 1], in place.
  void limit(const at::Tensor& actions) const;
  /// The discounted return of each episode: the sum of discount^t reward_t.
  std::vector<double> returns(double discount) const;

private:
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

  std::vector<replay::Episode> episodes_;
  replay::TransitionSpec transitions_;
  std::vector<std::int64_t> starts_; // [episodes + 1] first rows, then rows()
  at::Tensor episode_, time_, action_, reward_, discount_, log_probability_;
};

/// Encodes actions as network inputs [n, numbers]: continuous components unchanged, choices
/// one-hot.
at::Tensor encoded_actions(const at::Tensor& actions, const replay::TransitionSpec& transitions);

} // namespace troupe::learner
