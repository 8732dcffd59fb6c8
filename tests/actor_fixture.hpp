#pragma once

#include "tests/doctest_torch.hpp"

#include <caf/scheduler/test_coordinator.hpp>

#include "actors/protocol/system.hpp"

namespace troupe::tests {

struct HandMovedConfig : actors::SystemConfig {
  HandMovedConfig() : SystemConfig(false) { set("scheduler.policy", caf::atom("testing")); }
};

/// An actor system that delivers messages only when the test asks for it: no thread, no clock, no
/// sleep.
struct ActorFixture {
  HandMovedConfig config;
  caf::actor_system system{config};
  caf::scoped_actor self{system, true}; // hidden, so that shutdown does not wait for it
  caf::scheduler::test_coordinator& scheduler =
      dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());

  /// Delivers messages until all actors are idle. Triggers no timeout.
  void deliver_all(int left = 10'000) {
    while (scheduler.try_run_once())
      REQUIRE_MESSAGE(--left > 0, "actors never went idle");
  }

  /// Sends a request, delivers messages until all actors are idle, and returns the answer. Fails
  /// the test on an error.
  template <class Answer, class Actor, class... Args>
  Answer ask(const Actor& who, Args&&... args) {
    auto pending = self->request(who, caf::infinite, std::forward<Args>(args)...);
    deliver_all();
    Answer answer{};
    pending.receive([&](Answer& got) { answer = std::move(got); },
                    [&](caf::error& error) { FAIL(actors::explain(system, error)); });
    return answer;
  }
};

} // namespace troupe::tests
