#pragma once

#include <string>
#include <vector>

#include "experiments/config/experiment.pb.h"
#include "learner/agents/agent_kinds.hpp"

namespace troupe::experiments {

/// The agent that an experiment trains: its kind and its configuration block.
struct AgentChoice {
  const learner::AgentKind* kind = nullptr;           // null: a run on data has no agent
  std::string block = {};                             // name of the block; "agent" for a plug-in
  const google::protobuf::Message* options = nullptr; // the block itself, part of the experiment
};

/// For an agent from a plug-in, throws the exceptions of learner::plugin_agent().
AgentChoice chosen_agent(const Experiment& experiment);

/// The names of the agent blocks in the experiment.
std::vector<std::string> agent_blocks(const Experiment& experiment);

/// Adds the default agent's block if the experiment has no agent block. Sets the keys that the
/// experiment leaves out and for which a built-in agent has its own default
/// (learner::RunDefaults).
void settle_agent(Experiment& experiment);

} // namespace troupe::experiments
