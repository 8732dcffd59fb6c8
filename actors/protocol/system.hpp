#pragma once

#include <chrono>
#include <string>

#include "actors/protocol/messages.hpp"

namespace troupe::actors {

/// Deadline of every request between actors of a run; a learner's update and an evaluation episode
/// must fit in.
constexpr std::chrono::seconds kRequestDeadline{120};

/// The actor system's configuration: our message types and errors, no file read from the working
/// directory, CAF's own log off.
///
/// With `remote` the system can be reached and reach others (actors/remoting/remoting.hpp has the
/// keys). A peer that is silent for `silence` (0: for ever) counts as lost: its connection is
/// closed, and monitors of its actors are notified. A heartbeat every second keeps a quiet
/// connection.
struct SystemConfig : caf::actor_system_config {
  explicit SystemConfig(bool remote, std::chrono::milliseconds silence = {});
};

/// Identifies one life of a head, node or process. From the system's random source, not from a
/// run's seed.
std::uint64_t random_life();

/// The text of a CAF error.
std::string explain(const caf::actor_system& system, const caf::error& error);

/// An error with an exception's text, for self->quit() and for answers.
caf::error failure(const std::exception& exception);

/// The caf::result that `body` returns, or its exception as an error.
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

} // namespace troupe::actors
