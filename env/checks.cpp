#include "env/checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace troupe::env {

namespace {

template <typename T>
std::optional<std::size_t> first_not_finite_of(std::span<const std::byte> numbers) {
  const std::size_t count = numbers.size() / sizeof(T);
  const auto value = [&](std::size_t i) {
    T number;
    std::memcpy(&number, numbers.data() + i * sizeof(T), sizeof(T));
    return number;
  };
  T sum = 0; // 0 * x is NaN for NaN and infinity, so one pass without branches suffices
  for (std::size_t i = 0; i < count; ++i)
    sum += 0 * value(i);
  if (sum == 0)
    return {};
  std::size_t i = 0;
  while (std::isfinite(value(i)))
    ++i;
  return i;
}

} // namespace

void check_action(const EnvironmentSpec& spec, std::span<const double> action) {
  if (action.size() != spec.action.size())
    throw std::invalid_argument("environment " + spec.name + ": the action has "
                                + std::to_string(action.size()) + " numbers; it needs "
                                + std::to_string(spec.action.size()));
  for (std::size_t i = 0; i < action.size(); ++i) {
    if (const std::int64_t n = spec.action.choices_of(i);
        n != 0
        && !(action[i] >= 0 && action[i] < static_cast<double>(n)
             && action[i] == std::floor(action[i])))
      throw std::invalid_argument("environment " + spec.name + ": action[" + std::to_string(i)
                                  + "] is " + std::to_string(action[i])
                                  + "; it must be a whole number from 0 to "
                                  + std::to_string(n - 1));
    if (!std::isfinite(action[i]))
      throw std::invalid_argument("environment " + spec.name + ": action[" + std::to_string(i)
                                  + "] is " + std::to_string(action[i])
                                  + "; actions must be finite (has the policy diverged?)");
  }
}

void check_observation_buffer(const EnvironmentSpec& spec, std::span<const std::byte> observation) {
  if (observation.size() != spec.observation_bytes())
    throw std::invalid_argument("environment " + spec.name + ": the observation buffer has "
                                + std::to_string(observation.size()) + " bytes; it needs "
                                + std::to_string(spec.observation_bytes()));
}

void clip_action(const EnvironmentSpec& spec, std::span<const double> action,
                 std::span<double> clipped) {
  check_action(spec, action);
  for (std::size_t i = 0; i < action.size(); ++i)
    clipped[i] = std::clamp(action[i], spec.action.minimum[i], spec.action.maximum[i]);
}

void check_step(const EnvironmentSpec& spec, bool running, std::span<const double> action,
                std::span<const std::byte> observation, std::span<double> clipped) {
  check_observation_buffer(spec, observation);
  clip_action(spec, action, clipped);
  if (!running)
    throw std::invalid_argument("environment " + spec.name
                                + ": step() outside an episode; call reset() first");
}

std::optional<std::size_t> first_not_finite(const ArraySpec& array,
                                            std::span<const std::byte> numbers) {
  if (array.type == ElementType::float32)
    return first_not_finite_of<float>(numbers);
  if (array.type == ElementType::float64)
    return first_not_finite_of<double>(numbers);
  return {};
}

} // namespace troupe::env
