#pragma once

#include <functional>
#include <vector>

#include "actors/protocol/messages.hpp"

namespace troupe::actors {

struct ParameterState {
  static const char* name;
  ParametersPtr latest;
  std::vector<caf::actor> subscribers;
  std::function<void(const Parameters&)> also; // also gets new parameters; may be empty
};

/// Keeps the newest parameters (an older version never replaces a newer one) and sends them to
/// every subscriber. A new subscriber gets them at once.
ParameterActor::behavior_type parameter_actor(ParameterActor::stateful_pointer<ParameterState> self,
                                              std::function<void(const Parameters&)> also);

} // namespace troupe::actors
