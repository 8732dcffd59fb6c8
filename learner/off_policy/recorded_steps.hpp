#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/agents/parts/observed.hpp"
#include "replay/recordings/recording.hpp"

namespace troupe::learner {

/// The rows of recorded episodes by number, one episode after another. Const functions are
/// thread-safe.
class RecordedSteps {
public:
  /// Throws std::invalid_argument unless there is an episode, each has a step, and all have
  /// log-probabilities or none.
  RecordedSteps(std::vector<replay::Episode> episodes, replay::TransitionSpec transitions);

  const replay::TransitionSpec& transitions() const { return transitions_; }
  std::int64_t rows() const { return starts_.back(); }
  std::int64_t episodes() const { return static_cast<std::int64_t>(episodes_.size()); }
  std::int64_t steps() const { return rows() - episodes(); }
  std::int64_t first_row(std::int64_t episode) const { return starts_[at(episode)]; }
  std::int64_t last_row(std::int64_t episode) const { return starts_[at(episode) + 1] - 1; }
  std::int64_t longest() const; // steps of an episode
  /// Rows from which a step leads on.
  std::vector<std::int64_t> step_rows(std::int64_t episode) const;

  /// Of each row [rows]: its episode, its number in it, and the step that leads on from it, zeros
  /// in the last row of an episode. Continuous actions are limited to [-1, 1].
  const at::Tensor& episode() const { return episode_; } // int64
  const at::Tensor& time() const { return time_; }       // float32
  const at::Tensor& action() const { return action_; }   // float32 [rows, action size]
  const at::Tensor& reward() const { return reward_; }
  const at::Tensor& discount() const { return discount_; } // the environment's
  /// With which the recorded policy played the action; undefined if it was not recorded.
  const at::Tensor& log_probability() const { return log_probability_; }

  Observed observed(std::span<const std::int64_t> rows) const;
  /// What Observations refer to.
  struct Place {
    std::vector<const std::byte*> frames;
    std::vector<const std::byte*> vectors;
  };
  /// As a policy sees them, without a state; valid while `place` is unchanged.
  Observations observations(std::span<const std::int64_t> rows, Place& place) const;
  /// Continuous numbers of actions [n, action size] to [-1, 1], in place.
  void limit(const at::Tensor& actions) const;
  /// Sums of discount^t reward_t of each episode.
  std::vector<double> returns(double discount) const;

private:
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

  std::vector<replay::Episode> episodes_;
  replay::TransitionSpec transitions_;
  std::vector<std::int64_t> starts_; // rows, one more than episodes
  at::Tensor episode_, time_, action_, reward_, discount_, log_probability_;
};

/// [n, numbers] for a network: continuous numbers as they are, choices one-hot.
at::Tensor encoded_actions(const at::Tensor& actions, const replay::TransitionSpec& transitions);

} // namespace troupe::learner
