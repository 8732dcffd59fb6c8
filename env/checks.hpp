#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "env/spec.hpp"

namespace troupe::env {

/// Both throw std::invalid_argument naming the environment: check_action() if the action has the
/// wrong size, contains a number that is not finite, or a choice that is not one of its whole
/// numbers; check_observation_buffer() if the buffer has the wrong size.
void check_action(const EnvironmentSpec& spec, std::span<const double> action);
void check_observation_buffer(const EnvironmentSpec& spec, std::span<const std::byte> observation);

/// Calls check_action() and writes the action, clipped to its bounds, to `clipped` [action size].
void clip_action(const EnvironmentSpec& spec, std::span<const double> action,
                 std::span<double> clipped);

/// What step() of an environment without wrappers does first: it calls all of the above, and throws
/// std::invalid_argument unless an episode is `running`.
void check_step(const EnvironmentSpec& spec, bool running, std::span<const double> action,
                std::span<const std::byte> observation, std::span<double> clipped);

/// The index of the first number of an array that is not finite; empty if all are finite or
/// integers. `numbers` has array.bytes() bytes and need not be aligned.
std::optional<std::size_t> first_not_finite(const ArraySpec& array,
                                            std::span<const std::byte> numbers);

} // namespace troupe::env
