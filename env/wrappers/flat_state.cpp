#include "env/wrappers/flat_state.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "env/wrappers/checks.hpp"

namespace troupe::env {

FlatState::FlatState(std::unique_ptr<Environment> wrapped) : Wrapper(std::move(wrapped)) {
  std::int64_t numbers = 0;
  for (const ArraySpec& array : spec_.observations) {
    if (array.type != ElementType::float64)
      throw std::invalid_argument("environment " + spec_.name + ": observation '" + array.name
                                  + "' is " + element_name(array.type)
                                  + "; only float64 arrays are flattened to states");
    numbers += static_cast<std::int64_t>(array.elements());
  }
  scratch_.resize(spec_.observation_bytes());
  spec_.observations = {{"state", ElementType::float32, {numbers}}};
}

void FlatState::flatten(std::span<std::byte> observation) const {
  std::size_t written = 0;
  const auto& arrays = inner_spec().observations;
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    const std::byte* source = scratch_.data() + inner_spec().observation_offset(a);
    for (std::size_t i = 0; i < arrays[a].elements(); ++i, written += sizeof(float)) {
      double value = 0;
      std::memcpy(&value, source + i * sizeof(double), sizeof value);
      const float narrow = static_cast<float>(value);
      if (!std::isfinite(narrow))
        throw std::runtime_error("environment " + spec_.name + ": observation '" + arrays[a].name
                                 + "'[" + std::to_string(i) + "] is " + std::to_string(value)
                                 + ", which is no finite float32");
      std::memcpy(observation.data() + written, &narrow, sizeof narrow);
    }
  }
}

TimeStep FlatState::reset(std::uint64_t seed, std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  const TimeStep result = inner().reset(seed, scratch_);
  flatten(observation);
  return result;
}

TimeStep FlatState::step(std::span<const double> action, std::span<std::byte> observation) {
  check_observation_buffer(spec_, observation);
  const TimeStep result = inner().step(action, scratch_);
  flatten(observation);
  return result;
}

} // namespace troupe::env
