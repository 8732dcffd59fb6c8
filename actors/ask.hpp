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
/// returns when it failed. Gives who waits for it.
caf::actor ask_later(caf::actor_system& system, const caf::actor& listener,
                     const caf::actor& evaluator, const RunConfig& config, int episodes,
                     std::uint64_t minimum_version);

/// The listener gets (written_atom, path, "") when the checkpoint is written, or what failed.
caf::actor tell_when_written(caf::actor_system& system, const caf::actor& listener,
                             const CheckpointerActor& checkpointer);

constexpr std::chrono::minutes kWriteDeadline{120};  // of a checkpoint
constexpr std::chrono::seconds kStartDeadline{120};  // of an actor
constexpr std::int64_t kSnapshotStride = 1000;       // a shard numbers its own in between
constexpr std::chrono::milliseconds kPoll{50};       // of the head's mailbox
constexpr std::chrono::milliseconds kAftermath{500}; // in which the news of a death follows it

/// Request and answer; what else comes meanwhile is taken. Throws RunFailed with `what` and why,
/// where an actor's death that came in meanwhile is the cause; Disturbed where one that died is to
/// be started again.
template <class Answer, class... Args>
Answer Head::ask(const caf::actor& who, std::chrono::seconds deadline, const std::string& what,
                 Args&&... args) {
  struct Outcome {
    Answer answer{};
    caf::error problem;
  };
  auto outcome = std::make_shared<Outcome>(); // the relay's until it has sent its answer_atom
  const std::uint64_t question = ++questions_;
  const auto relay_question = [outcome, question, deadline, head = caf::actor(self_)](
                                  caf::event_based_actor* relay, const caf::actor& asked,
                                  const std::decay_t<Args>&... words) {
    const auto done = [=] { relay->send(head, answer_atom_v, question); };
    relay->request(asked, deadline, words...)
        .then(
            [=](const Answer& got) {
              outcome->answer = got;
              done();
            },
            [=](caf::error& error) {
              outcome->problem = std::move(error);
              done();
            });
  };
  const Relay relay(system_.spawn(relay_question, who, std::forward<Args>(args)...));
  asking_ = what;
  const std::unique_ptr<std::string, void (*)(std::string*)> asked(
      &asking_, [](std::string* text) { text->clear(); });
  while (answers_.erase(question) == 0) {
    take_messages(kPoll);
    if (!to_restart_.empty())
      throw Disturbed();
  }
  if (outcome->problem) {
    take_messages(kAftermath); // throws the first cause if somebody died
    if (!to_restart_.empty())
      throw Disturbed();
    throw RunFailed(what + ": " + explain(system_, outcome->problem));
  }
  return outcome->answer;
}

template <class Body>
void Head::persist(const Body& body) {
  for (;;)
    try {
      return body();
    } catch (const Disturbed&) {
      recover();
    }
}

} // namespace troupe::actors
