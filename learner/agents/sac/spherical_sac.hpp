#pragma once

#include "learner/agents/sac/sac.hpp"

namespace troupe::learner {

/// SAC with `spherical`: SimbaV2.
AgentPtr make_spherical_sac_agent(const SacConfig& config);

} // namespace troupe::learner
