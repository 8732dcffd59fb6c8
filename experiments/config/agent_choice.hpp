#pragma once

#include <string>
#include <vector>

#include "experiments/config/experiment.pb.h"
#include "learner/agents/agent_kinds.hpp"

namespace troupe::experiments {

/// The agent that an experiment trains: its kind and its block.
struct AgentChoice {
  const learner::AgentKind* kind = nullptr;           // null: a run on data has none
  std::string block = {};                             // its name; of a plug-in: "agent"
  const google::protobuf::Message* options = nullptr; // part of the experiment
};

/// Throws as learner::plugin_agent() if the agent is of a plug-in.
AgentChoice chosen_agent(const Experiment& experiment);

/// The names of the agents whose blocks the experiment has.
std::vector<std::string> agent_blocks(const Experiment& experiment);

/// Adds the default agent's block if there is none.
void settle_agent(Experiment& experiment);

} // namespace troupe::experiments
