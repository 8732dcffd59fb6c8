#include "learner/agents/agent.hpp"

#include <stdexcept>
#include <string>

namespace troupe::learner {

std::vector<OptionProblem> all_problems(std::initializer_list<std::vector<OptionProblem>> lists) {
  std::vector<OptionProblem> all;
  for (const auto& list : lists)
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::vector<OptionProblem> refused_observations(bool states, bool pixels,
                                                const AgentSetting& setting) {
  if (setting.picture ? pixels : states)
    return {};
  if (setting.picture)
    return {{"environment.pixels", "is given, but this agent learns from states; leave the block "
                                   "out, or choose an agent for pixels (`troupe list agents`)"}};
  return {{"environment.pixels", "is not given, but this agent learns from pixels; give the block, "
                                 "or choose an agent for states (`troupe list agents`)"}};
}

const char* action_text(ActionKind kind) {
  switch (kind) {
  case ActionKind::continuous:
    return "continuous";
  case ActionKind::choice:
    return "one choice";
  case ActionKind::any:
    return "continuous, choices";
  }
  throw std::logic_error("no such kind of actions");
}

replay::TransitionSpec stored_by(const Agent& agent, replay::TransitionSpec transitions) {
  const Storage storage = agent.storage();
  if (storage.item_uses < 1
      || (storage.item_uses > 1 && (!storage.on_policy || storage.newest_policy)))
    throw std::invalid_argument(
        "the agent's Storage::item_uses is " + std::to_string(storage.item_uses)
        + "; it must be at least 1, and 1 without on_policy (replay.samples_per_insert is the "
          "ratio "
          "for other agents) or with newest_policy (the updates change the policy)");
  if (storage.whole_episodes && (storage.sequence_steps == 0 || storage.newest_policy))
    throw std::invalid_argument(
        "the agent's Storage::whole_episodes is true; it needs sequence_steps above 0, the longest "
        "episode, and newest_policy false, because episodes do not end together");
  if (storage.running_return && storage.sequence_steps > 0)
    throw std::invalid_argument(
        "the agent's Storage::running_return is true; it needs sequence_steps 0, because only "
        "transitions have it");
  transitions.running_return = storage.running_return;
  if (storage.sequence_steps == 0)
    return transitions;
  transitions.sequence_steps = storage.sequence_steps;
  transitions.sequence_period = storage.sequence_period;
  transitions.whole_episodes = storage.whole_episodes;
  transitions.extras = {{kVersionColumn, env::ElementType::int64, {}}};
  transitions.extras.insert(transitions.extras.end(), storage.extras.begin(), storage.extras.end());
  return transitions;
}

} // namespace troupe::learner
