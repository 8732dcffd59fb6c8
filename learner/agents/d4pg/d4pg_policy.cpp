#include "learner/agents/d4pg/d4pg_networks.hpp"
#include "learner/agents/parts/deterministic_policy.hpp"

namespace troupe::learner {

std::unique_ptr<Policy> make_d4pg_policy(const D4pgConfig& config, const D4pgSpec& spec) {
  const D4pgNetworks networks(config, spec);
  return std::make_unique<DeterministicPolicy>("d4pg", spec.transition, networks.policy,
                                               networks.pixels ? &networks.encoder : nullptr,
                                               config.noise, config.blocks.normalise_observations);
}

} // namespace troupe::learner
