#pragma once

#include "tests/actor_fixture.hpp"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include "actors/supervision/node_info.hpp"
#include "actors/supervision/supervisor_actor.hpp"
#include "env/processes/forked.hpp"

namespace troupe::actors {

inline constexpr std::uint64_t kEpoch = 7;

/// A process that waits to be killed.
inline int start_idle_process() {
  return start_child(SIGKILL, [] {
    for (;;)
      ::pause();
  });
}

/// Waits until the process is dead; leaves it to be reaped if its supervisor has not done so
/// already.
inline void wait_until_dead(int process) {
  siginfo_t how{};
  if (::kill(process, 0) != 0 && errno == ESRCH)
    return;
  REQUIRE(::waitid(P_PID, static_cast<id_t>(process), &how, WEXITED | WNOWAIT) == 0);
  CHECK(how.si_status == SIGKILL);
}

/// Stops the process as a debugger does, or lets it continue.
inline void freeze(int process, bool on = true) {
  siginfo_t how{};
  REQUIRE(::kill(process, on ? SIGSTOP : SIGCONT) == 0);
  REQUIRE(::waitid(P_PID, static_cast<id_t>(process), &how, on ? WSTOPPED : WCONTINUED) == 0);
}

inline caf::behavior idle(caf::event_based_actor*) {
  return {[](tick_atom) {}, [](stop_atom) {}, [](wire_atom, const ProtoBytes&) {}};
}

inline caf::behavior refuses(caf::event_based_actor* self) {
  return {[self](tick_atom) { self->quit(caf::make_error(Fault::failed, std::string("NaN"))); }};
}

struct SupervisorFixture : tests::ActorFixture {
  std::vector<ProcessOrder> orders;
  std::vector<int> processes;
  caf::actor process = system.spawn(idle); // represents a process
  SupervisorActor supervisor;

  explicit SupervisorFixture(int learners = 1)
      : supervisor(system.spawn(supervisor_actor, options(learners))) {}
  ~SupervisorFixture() {
    self->send(supervisor, stop_atom_v);
    pass(25);
    for (const auto& who : {caf::actor_cast<caf::actor>(supervisor), process})
      caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
    deliver_all();
  }

  SupervisorOptions options(int learners) {
    RunConfig run;
    run.learner.replicas = learners;
    run.actors.restarts = 2;
    run.supervision.lost_seconds = 2;
    run.supervision.restart_minutes = 1;
    const auto start_process = [this](const ProcessOrder& order) {
      orders.push_back(order);
      processes.push_back(start_idle_process());
      return processes.back();
    };
    return {.config = run,
            .transitions = {},
            .listener = caf::actor(self),
            .deployment = {.start_process = start_process},
            .head_port = 4242,
            .epoch = kEpoch};
  }

  void pass(int seconds) {
    for (int tick = 0; tick < 5 * seconds; ++tick) {
      scheduler.clock().advance_time(std::chrono::milliseconds(200));
      deliver_all();
    }
  }

  static ProtoBytes life(Role role, std::uint64_t incarnation, std::uint64_t epoch = kEpoch,
                         std::int32_t index = 0) {
    wire::Life made;
    made.set_index(index);
    made.set_role(role_name(role));
    made.set_epoch(epoch);
    made.set_incarnation(incarnation);
    return encode(made);
  }

  void spawn(Role role, std::uint64_t incarnation, std::int32_t index = 0) {
    self->send(supervisor, spawn_atom_v, role, index, incarnation, std::int64_t{0});
    deliver_all();
  }

  caf::actor join(Role role, std::uint64_t incarnation,
                  caf::behavior (*what)(caf::event_based_actor*)) {
    const caf::actor who = system.spawn(what);
    self->send(supervisor, joined_atom_v, life(role, incarnation), who, process,
               std::string("tcp://127.0.0.1:1"));
    deliver_all();
    return who;
  }

  bool started() { // expects the next message to say so
    bool said = false;
    self->receive([&](started_atom, Role, std::int32_t, const caf::actor&, const std::string&,
                      std::int32_t) { said = true; },
                  caf::after(std::chrono::seconds(0)) >> [] {});
    return said;
  }

  struct Loss {
    std::string reason;
    bool restart = false;
  };
  std::optional<Loss> loss() { // from the next message
    std::optional<Loss> told;
    self->receive(
        [&](lost_atom, Role, std::int32_t, const std::string& reason, bool restart) {
          told = {reason, restart};
        },
        caf::after(std::chrono::seconds(0)) >> [] {});
    return told;
  }

  bool greeted(const ProtoBytes& who) {
    auto pending = self->request(supervisor, caf::infinite, hello_atom_v, who);
    deliver_all();
    bool in = false;
    pending.receive([&](const ProtoBytes&) { in = true; }, [](const caf::error&) {});
    return in;
  }
};

} // namespace troupe::actors
