#include "env/wrappers/action_scale.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "env/wrappers/checks.hpp"

namespace troupe::env {

ActionScale::ActionScale(std::unique_ptr<Environment> wrapped) : Wrapper(std::move(wrapped)) {
  const std::size_t size = spec_.action.size();
  for (std::size_t i = 0; i < size; ++i)
    if (!std::isfinite(spec_.action.minimum[i]) || !std::isfinite(spec_.action.maximum[i]))
      throw std::invalid_argument("environment " + spec_.name + ": action[" + std::to_string(i)
                                  + "] has no bounds, so it cannot be scaled to [-1, 1]");
  spec_.action.minimum.assign(size, -1);
  spec_.action.maximum.assign(size, 1);
  scaled_.resize(size);
}

TimeStep ActionScale::step(std::span<const double> action, std::span<std::byte> observation) {
  check_action(spec_, action);
  const ActionSpec& bounds = inner().spec().action;
  for (std::size_t i = 0; i < action.size(); ++i) {
    const double low = bounds.minimum[i];
    const double high = bounds.maximum[i];
    const double clipped = std::clamp(action[i], -1.0, 1.0);
    const bool same = low == -1 && high == 1; // keep the bits of what needs no scaling
    scaled_[i] = same ? clipped : low + (clipped + 1) / 2 * (high - low);
  }
  return inner().step(scaled_, observation);
}

} // namespace troupe::env
