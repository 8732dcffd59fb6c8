#pragma once

#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "learner/acting/policy.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// The observations as one tensor, [batch] + an observation's shape, a copy on the CPU. Throws
/// std::invalid_argument if they or `actions` have another size, std::runtime_error on a number
/// that is not finite.
at::Tensor observation_tensor(const Observations& observations,
                              const replay::TransitionSpec& transitions,
                              std::span<const float> actions);

/// Copies the parameters of a policy. Throws std::invalid_argument naming `agent` on a wrong count
/// or a value that is not finite.
void load_parameters(std::span<const float> parameters, const at::Tensor& to,
                     const std::string& agent);

} // namespace troupe::learner
