#include "actors/protocol/return_points_wire.hpp"

#include "actors/protocol/messages.pb.h"

namespace troupe::actors {

wire::ReturnPoints to_wire(const learner::ReturnPoints& points) {
  wire::ReturnPoints made;
  made.set_observations(points.observations.data(), points.observations.size());
  made.mutable_actions()->Add(points.actions.begin(), points.actions.end());
  made.mutable_returns()->Add(points.returns.begin(), points.returns.end());
  return made;
}

wire::LearnerEvaluation compared(const wire::ReturnPoints& given, learner::Replica& replica,
                                 const replay::TransitionSpec& transitions) {
  const auto* bytes = reinterpret_cast<const std::byte*>(given.observations().data());
  const learner::ReturnPoints points{.observations = {bytes, bytes + given.observations().size()},
                                     .actions = {given.actions().begin(), given.actions().end()},
                                     .returns = {given.returns().begin(), given.returns().end()}};
  wire::LearnerEvaluation made;
  if (points.returns.empty())
    return made;
  const at::Tensor values = replica.action_values(learner::tensors_of(points, transitions));
  if (values.defined()) {
    const auto errors = learner::value_errors(points, values);
    made.mutable_metrics()->insert(errors.begin(), errors.end());
  }
  return made;
}

} // namespace troupe::actors
