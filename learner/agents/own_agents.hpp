#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"

namespace troupe::learner {

/// Agents of a shared library (plugin.hpp), by name. A library stays loaded until the process ends.
/// Any thread. Throws std::invalid_argument naming the file: missing, no shared library, no entry
/// point, built for another version or by another compiler.
const std::vector<AgentKind>& plugin_agents(const std::filesystem::path& library);

/// One of them; its block is agents::OwnAgent. Throws as above and on an unknown name, with the
/// nearest ones.
const AgentKind& plugin_agent(const std::filesystem::path& library, const std::string& name);

/// Adds an agent of this process, or replaces the one of the same name for later runs; its block is
/// agents::OwnAgent without a plug-in. It stays until the process ends. Any thread.
void add_agent(AgentKind kind);

/// One of them. Throws std::invalid_argument on an unknown name.
const AgentKind& added_agent(const std::string& name);

} // namespace troupe::learner
