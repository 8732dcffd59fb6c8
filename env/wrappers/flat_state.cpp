#include "env/wrappers/flat_state.hpp"

#include <stdexcept>

#include "env/wrappers/narrow.hpp"

namespace troupe::env {

FlatState::FlatState(std::unique_ptr<Environment> wrapped)
    : ObservationWrapper(std::move(wrapped)) {
  std::int64_t numbers = 0;
  for (const ArraySpec& array : spec_.observations) {
    if (!is_floating(array.type))
      throw std::invalid_argument("environment " + spec_.name + ": observation '" + array.name
                                  + "' is " + element_name(array.type)
                                  + "; only float64 and float32 arrays are flattened to states");
    numbers += static_cast<std::int64_t>(array.elements());
  }
  spec_.observations = {{"state", ElementType::float32, {numbers}}};
}

void FlatState::write(std::span<std::byte> observation) {
  std::byte* out = observation.data();
  const auto& arrays = inner_spec().observations;
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    narrow_to_float32(spec_.name, arrays[a], inner_array(a), out);
    out += arrays[a].elements() * sizeof(float);
  }
}

} // namespace troupe::env
