#include "experiments/config/agent_choice.hpp"

#include <algorithm>
#include <string>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "learner/agents/own_agents.hpp"

namespace troupe::experiments {
namespace {

const google::protobuf::FieldDescriptor* block_of(const learner::AgentKind& kind) {
  return Experiment::descriptor()->FindFieldByName(kind.name);
}

double batch_size(const learner::AgentKind& kind, const google::protobuf::Message& options) {
  const auto* field = options.GetDescriptor()->FindFieldByName("batch_size");
  return options.GetReflection()->HasField(options, field)
             ? static_cast<double>(options.GetReflection()->GetInt64(options, field))
             : std::stod(kind.defaults.at("batch_size"));
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
  if (experiment.has_agent()) {
    return; // a plug-in's keys are unknown here
  }
  const auto [kind, block, options] = chosen_agent(experiment);
  const learner::RunDefaults& run = kind->run;
  Replay& replay = *experiment.mutable_replay();
  if (run.n_step > 0 && !replay.has_n_step()) {
    replay.set_n_step(run.n_step);
  }
  if (run.updates_per_step > 0 && !replay.has_samples_per_insert()) {
    const double samples = run.updates_per_step * batch_size(*kind, *options);
    replay.set_samples_per_insert(std::clamp(samples, 1e-3, 1e6)); // batch_size is unchecked
  }
  if (run.publish_period > 0 && !experiment.learner().has_publish_period()) {
    experiment.mutable_learner()->set_publish_period(run.publish_period);
  }
}

} // namespace troupe::experiments
