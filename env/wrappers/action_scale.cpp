#include "env/wrappers/action_scale.hpp"

#include <algorithm>
#include <cmath>

#include "env/checks.hpp"

namespace troupe::env {

ActionScale::ActionScale(std::unique_ptr<Environment> wrapped)
    : Wrapper(std::move(wrapped)), scaled_(spec_.action.size()) {
  for (std::size_t i = 0; i < scaled_.size(); ++i)
    if (spec_.action.choices_of(i) == 0) {
      spec_.action.minimum[i] = -1;
      spec_.action.maximum[i] = 1;
    }
}

TimeStep ActionScale::step(std::span<const double> action, std::span<std::byte> observation) {
  check_action(spec_, action);
  const ActionSpec& bounds = inner_spec().action;
  for (std::size_t i = 0; i < action.size(); ++i) {
    if (bounds.choices_of(i) != 0) {
      scaled_[i] = action[i];
      continue;
    }
    const double low = bounds.minimum[i];
    const double high = bounds.maximum[i];
    const double clipped = std::clamp(action[i], -1.0, 1.0);
    const bool same = (low == -1 && high == 1) // exact if no scaling is needed
                      || !std::isfinite(low) || !std::isfinite(high);
    scaled_[i] = same ? clipped : low + (clipped + 1) / 2 * (high - low);
  }
  return inner().step(scaled_, observation);
}

} // namespace troupe::env
