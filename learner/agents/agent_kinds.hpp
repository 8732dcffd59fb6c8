#pragma once

#include <string>
#include <vector>

#include "learner/agents/agent.hpp"

namespace troupe::learner {

/// The built-in agents, in the order of the `troupe_agent` calls in learner/CMakeLists.txt. The
/// first one is the default.
const std::vector<AgentKind>& agent_kinds();

/// Returns nullptr if no agent has this name.
const AgentKind* find_agent(const std::string& name);

} // namespace troupe::learner
