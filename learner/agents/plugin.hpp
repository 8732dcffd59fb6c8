#pragma once

#include <cstdint>

#include <torch/version.h>

#include "env/plugin/plugin.hpp"
#include "learner/agents/agent.hpp"

/// A user-defined agent is a class that derives from Agent, or a ConfiguredAgent, and one line in
/// one source file that registers it:
///
///     TROUPE_AGENTS({.name = "my_agent", .help = "one sentence", .make = make_mine})
///
/// Compiled into a shared library (-shared -fPIC -I <this checkout>), it is a plug-in:
///
///     agent { name: "my_agent" plugin: "libmine.so" options: "rate=0.001" }
///
/// It needs no libraries to link with, because the program that loads it provides learner/, replay/
/// and LibTorch. It must be built for exactly the version of that program.
/// experiments/examples/own_agent is an example.
namespace troupe::learner {

/// One agent in a library.
struct PluginAgent {
  const char* name;
  const char* help; // one sentence
  /// Throws std::invalid_argument naming an option that violates a rule. Options that no getter
  /// reads are rejected.
  AgentPtr (*make)(const env::Options& options);
  const char* metrics = ""; // of its replica's updates: "critic_loss q_mean"
  bool states = true;
  bool pixels = false;
  ActionKind actions = ActionKind::continuous;
  bool recurrent = false;
  bool both = false;        // pixels and states together
  bool asynchronous = true; // see AgentKind
};

/// Increased with every change of the interface for plug-ins.
inline constexpr std::uint32_t kAgentPluginVersion = 9;
inline constexpr std::uint64_t kAgentPluginMagic = 0x74656761'78727472ULL;

/// The result of the entry point. It begins with the fields of every plug-in's table
/// (env/plugin/shared_library.hpp).
struct AgentTable {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t interface_bytes;
  const char* fingerprint;
  const PluginAgent* agents;
  std::uint64_t count;
};

#define TROUPE_AGENT_FINGERPRINT "LibTorch " TORCH_VERSION
inline constexpr std::uint32_t kAgentInterfaceBytes =
    sizeof(replay::TransitionSpec) + 100 * sizeof(Storage) + 1000 * sizeof(Observations)
    + 100'000 * sizeof(Exploration) + 1'000'000 * sizeof(PluginAgent);

} // namespace troupe::learner

/// Defines the entry point. Use it once per shared library.
#define TROUPE_AGENTS(...)                                                                         \
  extern "C" __attribute__((visibility("default"))) const ::troupe::learner::AgentTable*           \
  troupe_agents() {                                                                                \
    static constexpr ::troupe::learner::PluginAgent kAgents[] = {__VA_ARGS__};                     \
    static constexpr ::troupe::learner::AgentTable kTable = {                                      \
        ::troupe::learner::kAgentPluginMagic,                                                      \
        ::troupe::learner::kAgentPluginVersion,                                                    \
        ::troupe::learner::kAgentInterfaceBytes,                                                   \
        TROUPE_AGENT_FINGERPRINT,                                                                  \
        kAgents,                                                                                   \
        sizeof kAgents / sizeof kAgents[0]};                                                       \
    return &kTable;                                                                                \
  }                                                                                                \
  static_assert(true)
