#include "actors/parameter_server_actor.hpp"

#include "actors/messages.pb.h"
#include "actors/system.hpp"

namespace troupe::actors {

const char* ParameterServerState::name = "parameter server";

namespace {

Encoded report(const learner::ParameterServerHost& host) {
  wire::ParameterServerReport made;
  made.set_endpoint(host.endpoint());
  made.set_garbage(host.counters().garbage);
  for (int optimizer = 0; optimizer < host.optimizers(); ++optimizer) {
    const auto counters = host.server_counters(optimizer);
    auto& one = *made.add_optimizers();
    one.set_version(host.version(optimizer));
    one.set_applied(counters.applied);
    one.set_dropped(counters.dropped);
    one.set_duplicates(counters.duplicates);
    one.set_refused(counters.refused);
    one.set_forgotten(counters.forgotten);
    one.set_staleness_sum(counters.staleness_sum);
    one.set_staleness_most(counters.staleness_most);
  }
  return encode(made);
}

template <class Action>
caf::result<done_atom> done_or_fault(const Action& action) {
  try {
    action();
    return done_atom_v;
  } catch (const std::exception& e) {
    return failure(e);
  }
}

} // namespace

ParameterServerActor::behavior_type
parameter_server_actor(ParameterServerActor::stateful_pointer<ParameterServerState> self,
                       env::wire::Context* context, learner::ParameterServerHostOptions options) {
  self->state.host = std::make_unique<learner::ParameterServerHost>(*context, options);
  return {
      [self](hello_atom) { return self->state.host->endpoint(); },
      [self](report_atom) { return report(*self->state.host); },
      [self](save_atom, const std::string& path) {
        return done_or_fault([&] { self->state.host->save(path); });
      },
      [self](load_atom, const std::string& path) {
        return done_or_fault([&] { self->state.host->load(path); });
      },
  };
}

} // namespace troupe::actors
