#include "env/wrappers/action_clip.hpp"

#include <algorithm>
#include <stdexcept>

#include "env/checks.hpp"

namespace troupe::env {

ActionClip::ActionClip(std::unique_ptr<Environment> wrapped, double minimum, double maximum)
    : Wrapper(std::move(wrapped)), clipped_(spec_.action.size()) {
  for (std::size_t i = 0; i < clipped_.size(); ++i) {
    if (spec_.action.choices_of(i) != 0)
      continue;
    double& low = spec_.action.minimum[i];
    double& high = spec_.action.maximum[i];
    const std::string bounds =
        std::string("[") + std::to_string(low) + ", " + std::to_string(high) + "]";
    low = std::max(low, minimum);
    high = std::min(high, maximum);
    if (!(low < high))
      throw std::invalid_argument("environment " + spec_.name + ": clipping action["
                                  + std::to_string(i) + "] to [" + std::to_string(minimum) + ", "
                                  + std::to_string(maximum) + "] leaves nothing of its bounds "
                                  + bounds);
  }
}

TimeStep ActionClip::step(std::span<const double> action, std::span<std::byte> observation) {
  clip_action(spec_, action, clipped_);
  return inner().step(clipped_, observation);
}

} // namespace troupe::env
