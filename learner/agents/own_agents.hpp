#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"

namespace troupe::learner {

/// Loads the agents of a shared library (see plugin.hpp). The library remains loaded until the
/// process ends. Thread-safe. Throws std::invalid_argument naming the file if it is missing, is not
/// a shared library, has no entry point, or was built for another version or by another compiler.
const std::vector<AgentKind>& plugin_agents(const std::filesystem::path& library);

/// Returns one agent of a library. Its block is agents::OwnAgent. Throws as plugin_agents() does,
/// and if the name is unknown, with the nearest names.
const AgentKind& plugin_agent(const std::filesystem::path& library, const std::string& name);

/// Adds an agent to this process until the process ends, or replaces the agent of the same name for
/// later runs. Its block is agents::OwnAgent without a plug-in. Thread-safe.
void add_agent(AgentKind kind);

/// Returns an agent that was added. Throws std::invalid_argument if the name is unknown.
const AgentKind& added_agent(const std::string& name);

} // namespace troupe::learner
