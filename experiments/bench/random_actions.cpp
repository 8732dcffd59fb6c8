#include <cmath>

#include "env/random.hpp"
#include "experiments/bench/random_actions.hpp"

namespace troupe::experiments {

std::vector<double> random_actions(const env::ActionSpec& spec, std::size_t count,
                                   std::uint64_t seed) {
  env::Random random(seed);
  std::vector<double> actions;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < spec.size(); ++k) {
      const bool bounded = std::isfinite(spec.minimum[k]) && std::isfinite(spec.maximum[k]);
      if (const std::int64_t n = spec.choices_of(k); n > 0)
        actions.push_back(std::floor(random.uniform(0, static_cast<double>(n))));
      else
        actions.push_back(
            random.uniform(bounded ? spec.minimum[k] : -1, bounded ? spec.maximum[k] : 1));
    }
  return actions;
}

} // namespace troupe::experiments
