#pragma once

#include <string>
#include <vector>

#include "learner/agents/agent.hpp"

namespace troupe::learner {

/// The built-in agents, of `troupe_agent` in learner/CMakeLists.txt, in its order. The first is the
/// default.
const std::vector<AgentKind>& agent_kinds();

/// nullptr: there is none of this name.
const AgentKind* find_agent(const std::string& name);

} // namespace troupe::learner
