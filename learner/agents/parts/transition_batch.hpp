#pragma once

#include <cstdint>

#include "learner/tensor_map.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// Checks a batch of transitions and returns the tensors that are used: "observation" and
/// "next_observation" [batch] + the observation's shape, its vectors by replay::vector_name(),
/// "action" [batch, action size] float32, "reward", "discount" and, if the transitions have it,
/// "running_return" [batch] float32, and optionally "weight" [batch] float32. Throws
/// std::invalid_argument naming a tensor of the wrong shape or type, and std::runtime_error naming
/// one that is not finite and `update`.
TensorMap checked_transitions(const TensorMap& batch, const replay::TransitionSpec& transitions,
                              std::int64_t update);

/// Checks a batch of sequences in the same way: "observation" [batch, steps + 1] + its shape,
/// "first" [batch, steps + 1] uint8, "action", "reward" and "discount" [batch, steps, …], the
/// extras, and optionally "weight".
TensorMap checked_sequences(const TensorMap& batch, const replay::TransitionSpec& transitions,
                            std::int64_t update);

} // namespace troupe::learner
