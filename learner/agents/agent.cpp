#include "learner/agents/agent.hpp"

#include <stdexcept>

namespace troupe::learner {

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
  if (storage.sequence_steps == 0)
    return transitions;
  transitions.sequence_steps = storage.sequence_steps;
  transitions.sequence_period = storage.sequence_period;
  transitions.extras = {{kVersionColumn, env::ElementType::int64, {}}};
  transitions.extras.insert(transitions.extras.end(), storage.extras.begin(), storage.extras.end());
  return transitions;
}

} // namespace troupe::learner
