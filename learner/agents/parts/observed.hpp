#pragma once

#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/tensor_map.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// Observations as network input.
struct Observed {
  at::Tensor frames;  // [rows…, the shape of a stack], uint8 or a floating-point type
  at::Tensor vectors; // [rows…, numbers] in addition to the frames; undefined: none

  /// Applies `function` to frames and vectors.
  template <class Function>
  Observed map(const Function& function) const {
    return {function(frames), vectors.defined() ? function(vectors) : vectors};
  }
};

/// Copies the observations of a batch to tensors on the CPU. Throws std::invalid_argument if they
/// or `actions` have the wrong size, and std::runtime_error if a number is not finite.
Observed observed(const Observations& observations, const replay::TransitionSpec& transitions,
                  std::span<const float> actions);

/// Returns the tensor `name` of a checked batch and its vectors, which are called vector_name(name,
/// …). They are moved to the device of `options`; numbers other than pixels are converted to its
/// type.
Observed observed(const TensorMap& batch, const std::string& name,
                  const replay::TransitionSpec& transitions, const at::TensorOptions& options);

/// Copies the parameters of a policy to `to`. Throws std::invalid_argument naming `agent` if their
/// count is wrong or a value is not finite.
void load_parameters(std::span<const float> parameters, const at::Tensor& to,
                     const std::string& agent);

} // namespace troupe::learner
