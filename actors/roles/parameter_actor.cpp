#include "actors/roles/parameter_actor.hpp"

#include <algorithm>

namespace troupe::actors {

const char* ParameterState::name = "parameters";

ParameterActor::behavior_type parameter_actor(ParameterActor::stateful_pointer<ParameterState> self,
                                              std::function<void(const Parameters&)> also) {
  self->state.also = std::move(also);
  self->set_down_handler([self](caf::down_msg& down) {
    std::erase_if(self->state.subscribers,
                  [&](const caf::actor& who) { return who.address() == down.source; });
  });
  return {
      [self](publish_atom, const ParametersPtr& parameters) {
        auto& state = self->state;
        if (state.latest && state.latest->version > parameters->version)
          return;
        state.latest = parameters;
        for (const auto& subscriber : state.subscribers)
          caf::anon_send(subscriber, publish_atom_v, parameters);
        if (state.also)
          state.also(*parameters);
      },
      [self](subscribe_atom, const caf::actor& who) {
        self->monitor(who);
        self->state.subscribers.push_back(who);
        if (self->state.latest)
          caf::anon_send(who, publish_atom_v, self->state.latest);
      },
  };
}

} // namespace troupe::actors
