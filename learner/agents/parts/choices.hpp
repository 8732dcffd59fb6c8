#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// n of an action that is one choice. Throws std::invalid_argument naming `agent` if it is another
/// action.
std::int64_t one_choice(const replay::TransitionSpec& transitions, const std::string& agent);

/// Throws std::invalid_argument naming `agent` if the action is empty or a number of it is a
/// choice.
void require_continuous(const replay::TransitionSpec& transitions, const std::string& agent);

/// Throws std::invalid_argument naming `agent` if an observation has vectors beside its frames.
void require_one_array(const replay::TransitionSpec& transitions, const std::string& agent);

/// Throws std::runtime_error naming `update` and the batch's tensor if a number of `choices` is
/// none of 0 to n - 1.
void check_choices(const at::Tensor& choices, std::int64_t n, std::int64_t update,
                   const char* name = "action");

} // namespace troupe::learner
