#include "env/wrappers/flat_state.hpp"

#include <stdexcept>

#include "env/checks.hpp"
#include "env/wrappers/narrow.hpp"

namespace troupe::env {

FlatState::FlatState(std::unique_ptr<Environment> wrapped) : Wrapper(std::move(wrapped)) {
  std::int64_t numbers = 0;
  for (const ArraySpec& array : spec_.observations) {
    if (!is_floating(array.type))
      throw std::invalid_argument("environment " + spec_.name + ": observation '" + array.name
                                  + "' is " + element_name(array.type)
                                  + "; only float64 and float32 arrays are flattened to states");
    numbers += static_cast<std::int64_t>(array.elements());
  }
  scratch_.resize(spec_.observation_bytes());
  spec_.observations = {{"state", ElementType::float32, {numbers}}};
}

void FlatState::flatten(std::span<std::byte> observation) const {
  std::byte* out = observation.data();
  const auto& arrays = inner_spec().observations;
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    narrow_to_float32(spec_.name, arrays[a], scratch_.data() + inner_spec().observation_offset(a),
                      out);
    out += arrays[a].elements() * sizeof(float);
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
