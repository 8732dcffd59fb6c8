#include "actors/protocol/messages.hpp"

namespace troupe::actors {

std::string to_string(Fault fault) {
  switch (fault) {
  case Fault::bad_request:
    return "bad request";
  case Fault::failed:
    return "failed";
  case Fault::late:
    return "late";
  case Fault::stopping:
    return "stopping";
  case Fault::lost:
    return "lost";
  }
  return "fault " + std::to_string(static_cast<int>(fault));
}

const char* role_name(Role role) {
  switch (role) {
  case Role::replay:
    return "replay";
  case Role::parameter_server:
    return "parameter_server";
  case Role::learner:
    return "learner";
  case Role::environment:
    return "environment";
  case Role::evaluator:
    return "evaluator";
  }
  return "unknown";
}

Role role_named(const std::string& name) {
  for (const Role role : kRoles)
    if (name == role_name(role))
      return role;
  throw std::invalid_argument(
      "no role '" + name
      + "': it must be replay, parameter_server, learner, environment or evaluator");
}

} // namespace troupe::actors
