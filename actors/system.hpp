#pragma once

#include <chrono>
#include <string>

#include "actors/messages.hpp"

namespace troupe::actors {

/// Deadline of every request between actors of a run; a learner's update and an evaluation episode
/// must fit in.
constexpr std::chrono::seconds kRequestDeadline{120};

/// The actor system's configuration: our message types and errors, no file read from the working
/// directory, CAF's own log off.
///
/// With `remote` the system can be reached and reach others (actors/remoting.hpp has the keys). A
/// peer that is silent for `silence` (0: for ever) is taken for gone: its connection is closed and
/// who monitors its actors is told. Heart-beats go out once a second, so that a living one is not.
struct SystemConfig : caf::actor_system_config {
  explicit SystemConfig(bool remote, std::chrono::milliseconds silence = {});
};

/// Tells one life of a head or node from another; drawn from the system, of no use for learning.
std::uint64_t random_life();

/// What a CAF error says, in words for a person.
std::string explain(const caf::actor_system& system, const caf::error& error);

/// An error that carries an exception's text; for self->quit() and for answers.
caf::error failure(const std::exception& exception);

} // namespace troupe::actors
