#pragma once

#include <functional>
#include <vector>

#include "actors/messages.hpp"

namespace troupe::actors {

struct ParameterState {
  static const char* name;
  ParametersPtr latest;
  std::vector<caf::actor> subscribers;
  std::function<void(const Parameters&)> also; // e.g. onto the wire; may be empty
};

/// Keeps the newest parameters (an older version never replaces a newer one) and hands them to
/// every subscriber; who subscribes later gets them at once.
ParameterActor::behavior_type parameter_actor(ParameterActor::stateful_pointer<ParameterState> self,
                                              std::function<void(const Parameters&)> also);

} // namespace troupe::actors
