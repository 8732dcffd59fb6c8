#pragma once

#include <cstddef>
#include <span>

#include "env/spec.hpp"

namespace troupe::env {

/// Throws std::invalid_argument naming the environment when the action has another size, a number
/// that is not finite or a choice that is not one of its whole numbers, or the buffer another size.
void check_action(const EnvironmentSpec& spec, std::span<const double> action);
void check_observation_buffer(const EnvironmentSpec& spec, std::span<const std::byte> observation);

} // namespace troupe::env
