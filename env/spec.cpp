#include "env/spec.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::env {

std::size_t element_bytes(ElementType type) {
  switch (type) {
  case ElementType::uint8:
    return 1;
  case ElementType::float32:
    return 4;
  case ElementType::float64:
  case ElementType::int64:
    return 8;
  }
  throw std::invalid_argument("element type " + std::to_string(static_cast<int>(type))
                              + " is unknown");
}

const char* element_name(ElementType type) {
  switch (type) {
  case ElementType::uint8:
    return "uint8";
  case ElementType::float32:
    return "float32";
  case ElementType::float64:
    return "float64";
  case ElementType::int64:
    return "int64";
  }
  return "?";
}

std::size_t ArraySpec::elements() const {
  std::size_t count = 1;
  for (const std::int64_t n : shape)
    count *= static_cast<std::size_t>(n);
  return count;
}

bool ActionSpec::is_continuous() const {
  return std::ranges::all_of(choices, [](std::int64_t n) { return n == 0; });
}

ActionSpec one_of(std::int64_t n) {
  return {.minimum = {0}, .maximum = {static_cast<double>(n - 1)}, .choices = {n}};
}

std::string problem_of(const ActionSpec& action) {
  if (action.minimum.size() != action.maximum.size())
    return std::to_string(action.minimum.size()) + " action minima and "
           + std::to_string(action.maximum.size()) + " maxima; their numbers must be equal";
  if (!action.choices.empty() && action.choices.size() != action.size())
    return std::to_string(action.choices.size()) + " numbers of choices for "
           + std::to_string(action.size())
           + " action dimensions; there must be one for each, or none";
  for (std::size_t i = 0; i < action.size(); ++i) {
    const std::string name = "action[" + std::to_string(i) + "]";
    const std::int64_t n = action.choices_of(i);
    if (n != 0 && n < 2)
      return name + " has " + std::to_string(n)
             + " choices; it must have 2 or more, or be continuous (0)";
    if (n != 0 && (action.minimum[i] != 0 || action.maximum[i] != static_cast<double>(n - 1)))
      return name + " has " + std::to_string(n) + " choices and the bounds "
             + std::to_string(action.minimum[i]) + " and " + std::to_string(action.maximum[i])
             + "; they must be 0 and " + std::to_string(n - 1);
    if (!(action.minimum[i] < action.maximum[i])) // false for NaN
      return name + " is bounded by " + std::to_string(action.minimum[i]) + " and "
             + std::to_string(action.maximum[i]) + "; the minimum must be below the maximum";
  }
  return "";
}

std::size_t EnvironmentSpec::observation_offset(std::size_t index) const {
  std::size_t offset = 0;
  for (std::size_t i = 0; i < index; ++i)
    offset += (observations[i].bytes() + 7) / 8 * 8;
  return offset;
}

bool EnvironmentSpec::stacks(std::size_t index) const {
  return observations[index].is_picture()
         || std::ranges::none_of(observations, &ArraySpec::is_picture);
}

std::size_t EnvironmentSpec::observation_bytes() const {
  return observations.empty()
             ? 0
             : observation_offset(observations.size() - 1) + observations.back().bytes();
}

} // namespace troupe::env
