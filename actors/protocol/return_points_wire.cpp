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

learner::ReturnPoints from_wire(const wire::ReturnPoints& points) {
  const auto* bytes = reinterpret_cast<const std::byte*>(points.observations().data());
  return {.observations = {bytes, bytes + points.observations().size()},
          .actions = {points.actions().begin(), points.actions().end()},
          .returns = {points.returns().begin(), points.returns().end()}};
}

} // namespace troupe::actors
