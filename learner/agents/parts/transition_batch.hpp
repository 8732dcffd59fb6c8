#pragma once

#include <cstdint>

#include "learner/tensor_map.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// The tensors of a batch of transitions, checked: "observation" and "next_observation" [batch] +
/// the observation's shape, its vectors by replay::vector_name(), "action" [batch, action size]
/// float32, "reward" and "discount" [batch] float32, and "weight" [batch] float32 where there is
/// one. Throws std::invalid_argument naming a tensor of another shape or type, std::runtime_error
/// naming one that is not finite and `update`.
TensorMap checked_transitions(const TensorMap& batch, const replay::TransitionSpec& transitions,
                              std::int64_t update);

/// The same of a batch of sequences: "observation" [batch, steps + 1] + its shape, "first" [batch,
/// steps + 1] uint8, "action", "reward" and "discount" [batch, steps, …], the extras,
/// and "weight" as above.
TensorMap checked_sequences(const TensorMap& batch, const replay::TransitionSpec& transitions,
                            std::int64_t update);

} // namespace troupe::learner
