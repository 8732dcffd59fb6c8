#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "learner/metrics.hpp"
#include "learner/tensor_map.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// Steps of an episode with the discounted returns that followed them, to compare a critic's values
/// with.
struct ReturnPoints {
  std::vector<std::byte> observations = {}; // in the environment's own format, concatenated
  std::vector<float> actions = {};
  std::vector<double> returns = {};
};

/// Keeps a limited number of steps of an episode, evenly spread over it. Not thread-safe.
class ReturnPointRecorder {
public:
  ReturnPointRecorder(std::size_t most, double discount) : most_(most), discount_(discount) {}

  /// Adds a step: the observation, the action chosen for it, and the reward and discount that
  /// followed.
  void add(std::span<const std::byte> observation, std::span<const float> action, double reward,
           double discount);
  /// Returns the points of the episode that has ended. If a time limit cut the episode off, the
  /// points exclude the last steps, whose returns would miss more than 5 % of the weight of the
  /// following rewards.
  ReturnPoints finish() const;

private:
  struct Step {
    std::size_t number = 0;
    std::vector<std::byte> observation;
    std::vector<float> action;
  };

  std::size_t most_;
  double discount_;
  std::size_t stride_ = 1;
  std::vector<Step> steps_;
  std::vector<double> rewards_, discounts_;
};

/// Converts the points to a batch as replay returns it: "observation", its vectors, and "action".
/// Throws std::invalid_argument if their sizes do not fit.
TensorMap tensors_of(const ReturnPoints& points, const replay::TransitionSpec& transitions);

/// Compares `values` [points] with the returns. Returns "q_bias", the mean of value - return,
/// "q_bias_deviation", the standard deviation of that difference over the points, and "q_return",
/// the mean return.
Metrics value_errors(const ReturnPoints& points, const at::Tensor& values);

} // namespace troupe::learner
