#pragma once

#include "learner/agents/sac/sac.hpp"

namespace troupe::learner {

/// Makes SAC with `spherical`, which is SimbaV2.
AgentPtr make_spherical_sac_agent(const SacConfig& config);

} // namespace troupe::learner
