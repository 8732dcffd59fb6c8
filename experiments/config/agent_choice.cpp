#include "experiments/config/agent_choice.hpp"

#include <google/protobuf/descriptor.h>

#include "learner/agents/own_agents.hpp"

namespace troupe::experiments {
namespace {

const google::protobuf::FieldDescriptor* block_of(const learner::AgentKind& kind) {
  return Experiment::descriptor()->FindFieldByName(kind.name);
}

} // namespace

std::vector<std::string> agent_blocks(const Experiment& experiment) {
  std::vector<std::string> names;
  for (const learner::AgentKind& kind : learner::agent_kinds()) {
    if (experiment.GetReflection()->HasField(experiment, block_of(kind))) {
      names.push_back(kind.name);
    }
  }
  if (experiment.has_agent()) {
    names.emplace_back("agent");
  }
  return names;
}

AgentChoice chosen_agent(const Experiment& experiment) {
  const auto blocks = agent_blocks(experiment);
  if (blocks.empty()) {
    return {};
  }
  if (blocks.front() == "agent") {
    const auto& own = experiment.agent();
    const learner::AgentKind& kind = own.plugin().empty()
                                         ? learner::added_agent(own.name())
                                         : learner::plugin_agent(own.plugin(), own.name());
    return {&kind, "agent", &own};
  }
  const learner::AgentKind& kind = *learner::find_agent(blocks.front());
  return {&kind, kind.name, &experiment.GetReflection()->GetMessage(experiment, block_of(kind))};
}

void settle_agent(Experiment& experiment) {
  if (agent_blocks(experiment).empty()) {
    experiment.GetReflection()->MutableMessage(&experiment,
                                               block_of(learner::agent_kinds().front()));
  }
}

} // namespace troupe::experiments
