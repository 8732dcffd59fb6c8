#pragma once

#include <chrono>
#include <string>

#include "actors/protocol/messages.hpp"

namespace troupe::actors {

/// Deadline of every request between actors of a run. A learner's update and an evaluation episode
/// must each take less.
constexpr std::chrono::seconds kRequestDeadline{120};

/// Configuration of the actor system: registers our message types and errors, reads no file from
/// the working directory, and turns CAF's own log off.
///
/// With `remote` the system can publish actors and connect to others (actors/remoting/remoting.hpp
/// has the keys). Every five seconds it sends a heartbeat over each connection, so that a broken
/// one is noticed.
struct SystemConfig : caf::actor_system_config {
  explicit SystemConfig(bool remote);
};

/// Returns a number that identifies one life of a head, node or process. It comes from the system's
/// random source, not from the run's seed.
std::uint64_t random_life();

/// Returns the text of a CAF error.
std::string explain(const caf::actor_system& system, const caf::error& error);

/// Makes an error with an exception's text, for self->quit() and for answers.
caf::error failure(const std::exception& exception);

/// Returns the result of `body`, or its exception as an error.
template <class Body>
auto answer_or_fault(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& e) {
    return failure(e);
  }
}

template <class Action>
caf::result<done_atom> done_or_fault(const Action& action) {
  return answer_or_fault([&]() -> caf::result<done_atom> {
    action();
    return done_atom_v;
  });
}

/// Runs `body`. An exception ends the actor with failure().
template <class Self, class Body>
void quit_on_fault(Self* self, const Body& body) {
  try {
    body();
  } catch (const std::exception& e) {
    self->quit(failure(e));
  }
}

} // namespace troupe::actors
