#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// Returns the number of alternatives of an action that is one choice. Throws std::invalid_argument
/// naming `agent` if the action is not one choice.
std::int64_t one_choice(const replay::TransitionSpec& transitions, const std::string& agent);

/// Throws std::invalid_argument naming `agent` if the action is empty or contains a choice.
void require_continuous(const replay::TransitionSpec& transitions, const std::string& agent);

/// Throws std::invalid_argument naming `agent` if an observation has vectors in addition to its
/// frames.
void require_one_array(const replay::TransitionSpec& transitions, const std::string& agent);

/// Throws std::runtime_error naming `update` and the batch's tensor if an element of `choices` is
/// not an integer from 0 to n - 1.
void check_choices(const at::Tensor& choices, std::int64_t n, std::int64_t update,
                   const char* name = "action");

/// Throws std::runtime_error naming the first row of a policy's outputs, [batch, …] on the CPU,
/// that has a NaN or infinity.
void require_finite_rows(const at::Tensor& outputs);

/// Returns the choice of greatest value in each row of `values`, [batch, choices], which must be
/// finite.
at::Tensor best_choices(const at::Tensor& values);

} // namespace troupe::learner
