#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "learner/metrics.hpp"
#include "learner/tensor_map.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// Steps of an episode and the discounted returns that followed them, against which the values of
/// a critic can be held.
struct ReturnPoints {
  std::vector<std::byte> observations = {}; // as the environment writes them, one after another
  std::vector<float> actions = {};
  std::vector<double> returns = {};
};

/// Keeps at most so many steps of an episode, evenly spread. One thread.
class ReturnPointRecorder {
public:
  ReturnPointRecorder(std::size_t most, double discount) : most_(most), discount_(discount) {}

  /// The action chosen for the observation, and what came of it.
  void add(std::span<const std::byte> observation, std::span<const float> action, double reward,
           double discount);
  /// Of the episode that ended. If a time limit cut it off, without the last steps, whose returns
  /// would miss more than a twentieth of the weight of what follows them.
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

/// The points as a batch of replay: "observation", its vectors, and "action". Throws
/// std::invalid_argument if their sizes do not fit.
TensorMap tensors_of(const ReturnPoints& points, const replay::TransitionSpec& transitions);

/// What `values`, [points], are against the returns: "q_bias", the mean of value - return;
/// "q_bias_deviation" over the points; "q_return", the mean return.
Metrics value_errors(const ReturnPoints& points, const at::Tensor& values);

} // namespace troupe::learner
