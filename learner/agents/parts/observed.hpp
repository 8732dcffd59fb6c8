#pragma once

#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "learner/tensor_map.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// What a network observes.
struct Observed {
  at::Tensor frames;  // [rows…] + a stack's shape, uint8 or a floating-point type
  at::Tensor vectors; // [rows…, numbers] beside them; undefined: none

  /// The same function of both.
  template <class Function>
  Observed map(const Function& function) const {
    return {function(frames), vectors.defined() ? function(vectors) : vectors};
  }
};

/// The observations [batch], a copy on the CPU. Throws std::invalid_argument if they or `actions`
/// have another size, std::runtime_error on a number that is not finite.
Observed observed(const Observations& observations, const replay::TransitionSpec& transitions,
                  std::span<const float> actions);

/// The tensor `name` of a checked batch and its vectors, which are called vector_name(name, …):
/// pictures on the options' device, numbers of its type as well.
Observed observed(const TensorMap& batch, const std::string& name,
                  const replay::TransitionSpec& transitions, const at::TensorOptions& options);

/// Copies the parameters of a policy. Throws std::invalid_argument naming `agent` on a wrong count
/// or a value that is not finite.
void load_parameters(std::span<const float> parameters, const at::Tensor& to,
                     const std::string& agent);

} // namespace troupe::learner
