#pragma once

#include "actors/head.hpp"
#include "learner/collector.hpp"

namespace troupe::actors {

/// The seed of all evaluation episodes of a run: the same starts each time, so that curves are
/// smooth.
inline std::uint64_t evaluation_seed(const RunConfig& config) {
  return learner::split_seed(config.seed, {5});
}

/// Asks for an evaluation without waiting: the listener gets (evaluate_atom, Encoded), with no
/// returns when it failed.
void ask_later(caf::actor_system& system, const caf::actor& listener, const caf::actor& evaluator,
               const RunConfig& config, int episodes, std::uint64_t minimum_version);

/// The listener gets (written_atom, path, "") when the checkpoint is written, or what failed.
void tell_when_written(caf::actor_system& system, const caf::actor& listener,
                       const CheckpointerActor& checkpointer);

constexpr std::chrono::minutes kWriteDeadline{120}; // of a checkpoint

/// Request and answer on the head's thread. Throws RunFailed with `what` and why; an actor's death
/// that came in meanwhile is the cause.
template <class Answer, class... Args>
Answer Head::ask(const caf::actor& who, std::chrono::seconds deadline, const std::string& what,
                 Args&&... args) {
  Answer answer{};
  caf::error problem;
  self_->request(who, deadline, std::forward<Args>(args)...)
      .receive([&](const Answer& got) { answer = got; },
               [&](caf::error& error) { problem = std::move(error); });
  if (problem) {
    take_messages(std::chrono::milliseconds(500)); // throws the first cause if somebody died
    throw RunFailed(what + ": " + explain(system_, problem));
  }
  return answer;
}

} // namespace troupe::actors
