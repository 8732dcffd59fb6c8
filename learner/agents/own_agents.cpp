#include "learner/agents/own_agents.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "env/nearest_names.hpp"
#include "env/plugin/own_environments.hpp"
#include "env/plugin/shared_library.hpp"
#include "learner/agents/own_agent.pb.h"
#include "learner/agents/plugin.hpp"

namespace troupe::learner {
namespace {

constexpr env::PluginWords kWords{.entry_point = "troupe_agents",
                                  .macro = "TROUPE_AGENTS(...)",
                                  .header = "learner/agents/plugin.hpp",
                                  .things = "agents"};

AgentPtr made(const PluginAgent& agent, const google::protobuf::Message& block) {
  const auto& own = dynamic_cast<const agents::OwnAgent&>(block);
  const env::Options options = env::parse_options({own.options().begin(), own.options().end()});
  const std::string origin = "agent " + std::string(agent.name) + " (" + own.plugin() + ")";
  AgentPtr result;
  try {
    result = agent.make(options);
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::exception& problem) {
    throw std::runtime_error(origin + ": its make function threw: " + problem.what());
  } catch (...) {
    throw std::runtime_error(origin
                             + ": its make function threw something other than a std::exception");
  }
  if (result == nullptr)
    throw std::runtime_error(origin + ": its make function returned no object");
  env::check_all_asked(options, origin);
  return result;
}

AgentKind kind_of(const PluginAgent& agent) {
  AgentKind kind{.name = agent.name,
                 .help = agent.help,
                 .states = agent.states,
                 .pixels = agent.pixels,
                 .both = agent.both,
                 .actions = agent.actions,
                 .recurrent = agent.recurrent,
                 .asynchronous = agent.asynchronous,
                 .options = agents::OwnAgent::descriptor()};
  std::istringstream metrics(agent.metrics);
  for (std::string name; metrics >> name;)
    kind.metrics.push_back(name);
  kind.check = [&agent](const google::protobuf::Message& block, const AgentSetting& setting) {
    auto problems = refused_observations(agent.states, agent.pixels, setting);
    try {
      made(agent, block);
    } catch (const std::exception& problem) {
      problems.push_back({"options", std::string("are refused: ") + problem.what()});
    }
    return problems;
  };
  kind.make = [&agent](const google::protobuf::Message& block) { return made(agent, block); };
  return kind;
}

struct AddedAgents {
  std::mutex mutex;
  std::deque<AgentKind> kinds; // of agents with the same name, the last one is valid
};

AddedAgents& added_agents() {
  static auto& added = *new AddedAgents; // never destroyed: an agent may belong to an interpreter
  return added;
}

} // namespace

void add_agent(AgentKind kind) {
  const std::scoped_lock lock(added_agents().mutex);
  added_agents().kinds.push_back(std::move(kind));
}

const AgentKind& added_agent(const std::string& name) {
  const std::scoped_lock lock(added_agents().mutex);
  std::vector<std::string> names;
  for (auto kind = added_agents().kinds.rbegin(); kind != added_agents().kinds.rend(); ++kind) {
    if (kind->name == name)
      return *kind;
    names.push_back(kind->name);
  }
  if (names.empty())
    throw std::invalid_argument("plugin is empty; name the shared library that holds the agent");
  throw std::invalid_argument("'" + name + "' is not an agent of this process; the nearest is '"
                              + env::nearest_names(name, names).front()
                              + "', and an agent of a shared library needs plugin");
}

const std::vector<AgentKind>& plugin_agents(const std::filesystem::path& library) {
  if (library.empty())
    throw std::invalid_argument("plugin is empty; name the shared library that holds the agent");
  static std::mutex mutex;
  static std::map<std::filesystem::path, std::vector<AgentKind>> loaded;
  const std::scoped_lock lock(mutex);
  const auto [at, fresh] = loaded.try_emplace(std::filesystem::absolute(library));
  if (!fresh)
    return at->second;
  try {
    using Entry = const AgentTable* (*)();
    const AgentTable* table = reinterpret_cast<Entry>(env::plugin_entry_point(library, kWords))();
    env::PluginHead head;
    if (table != nullptr)
      head = {table->magic, table->version, table->interface_bytes, table->fingerprint};
    env::check_plugin_head(
        head,
        {kAgentPluginMagic, kAgentPluginVersion, kAgentInterfaceBytes, TROUPE_AGENT_FINGERPRINT},
        "plugin: " + library.string(), kWords);
    for (std::uint64_t i = 0; i < table->count; ++i)
      at->second.push_back(kind_of(table->agents[i]));
  } catch (...) {
    loaded.erase(at);
    throw;
  }
  return at->second;
}

const AgentKind& plugin_agent(const std::filesystem::path& library, const std::string& name) {
  std::vector<std::string> names;
  for (const AgentKind& kind : plugin_agents(library)) {
    if (kind.name == name)
      return kind;
    names.push_back(kind.name);
  }
  std::string message = "'" + name + "' is not in plug-in " + library.string();
  for (const std::string& other : env::nearest_names(name, names))
    message +=
        (other == env::nearest_names(name, names).front() ? "; nearest: '" : " '") + other + "'";
  throw std::invalid_argument(message);
}

} // namespace troupe::learner
