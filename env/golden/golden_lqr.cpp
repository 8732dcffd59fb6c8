#include "env/golden/golden_lqr.hpp"

#include <random>

#include "env/golden/golden_index.hpp"
#include "env/physics.hpp"

namespace troupe::env {

namespace {

/// numpy.random.RandomState(seed).random_sample(): 53 bits from two draws.
double uniform(std::mt19937& twister) {
  const double high = static_cast<double>(twister() >> 5);
  const double low = static_cast<double>(twister() >> 6);
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

} // namespace

void set_recorded_springs(Physics& physics, const std::string& folder, const std::string& task) {
  std::mt19937 twister(read_golden_entry(folder, task, [](const nlohmann::json& entry) {
    return entry.at("seed").get<std::uint32_t>();
  }));
  for (double& stiffness : physics.own_array("jnt_stiffness")) {
    stiffness = 15 + 10 * uniform(twister);
    uniform(twister); // the damping, drawn from the range 0 to 0
  }
}

} // namespace troupe::env
