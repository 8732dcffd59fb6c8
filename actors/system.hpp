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
struct SystemConfig : caf::actor_system_config {
  explicit SystemConfig(bool remote);
};

/// What a CAF error says, in words for a person.
std::string explain(const caf::actor_system& system, const caf::error& error);

/// An error that carries an exception's text; for self->quit() and for answers.
caf::error failure(const std::exception& exception);

} // namespace troupe::actors
