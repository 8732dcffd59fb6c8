#include "env/wrappers/action_scale.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "env/checks.hpp"

namespace troupe::env {

ActionScale::ActionScale(std::unique_ptr<Environment> wrapped, double minimum, double maximum)
    : Wrapper(std::move(wrapped)),
      minimum_(minimum),
      maximum_(maximum),
      scaled_(spec_.action.size()) {
  if (!std::isfinite(minimum) || !std::isfinite(maximum) || minimum >= maximum)
    throw std::invalid_argument("actions cannot be scaled from [" + std::to_string(minimum) + ", "
                                + std::to_string(maximum)
                                + "]: give a finite minimum below a finite maximum");
  for (std::size_t i = 0; i < scaled_.size(); ++i)
    if (spec_.action.choices_of(i) == 0) {
      spec_.action.minimum[i] = minimum;
      spec_.action.maximum[i] = maximum;
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
    const double clipped = std::clamp(action[i], minimum_, maximum_);
    const bool same = (low == minimum_ && high == maximum_) // exact if no scaling is needed
                      || !std::isfinite(low) || !std::isfinite(high);
    scaled_[i] = same ? clipped : low + (clipped - minimum_) / (maximum_ - minimum_) * (high - low);
  }
  return inner().step(scaled_, observation);
}

} // namespace troupe::env
