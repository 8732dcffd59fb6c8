#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/protocol/head_record.pb.h"
#include "actors/protocol/system.hpp"
#include "actors/remoting/remoting.hpp"
#include "actors/run/run_context.hpp"

namespace troupe::actors {

/// Thrown if the run cannot continue; what() is the first cause.
class RunFailed : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Thrown if an actor died and will be restarted; the caller recovers and repeats what it was
/// doing.
class ActorLost : public std::exception {
public:
  const char* what() const noexcept override { return "an actor died and is being restarted"; }
};

/// Thrown if no process of the previous head is left, or none can reach this head; what() gives the
/// reason.
class NothingToTakeOver : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Thrown if the run is asked to stop while its actors start, when there is nothing to save yet.
class StoppedAtStart : public std::exception {
public:
  const char* what() const noexcept override { return "stopped before training began"; }
};

std::string actor_name(const ActorKey& key); // "replay actor 0"

constexpr std::chrono::seconds kStartDeadline{120};  // for an actor to start
constexpr std::chrono::milliseconds kPoll{50};       // how long the head waits for messages
constexpr std::chrono::milliseconds kAftermath{500}; // until a death has been reported

/// A request that ends with this object, answered or not. A request to a dead actor that outlives
/// the actor system crashes it (CAF 0.17).
class PendingRequest {
public:
  PendingRequest() = default;
  PendingRequest(caf::actor relay, std::shared_ptr<std::function<void()>> on_answer)
      : relay_(std::move(relay)), on_answer_(std::move(on_answer)) {}
  ~PendingRequest() { end(); }
  PendingRequest(PendingRequest&& other) noexcept
      : relay_(std::exchange(other.relay_, nullptr)), on_answer_(std::move(other.on_answer_)) {}
  PendingRequest& operator=(PendingRequest&& other) noexcept {
    end();
    relay_ = std::exchange(other.relay_, nullptr);
    on_answer_ = std::move(other.on_answer_);
    return *this;
  }

private:
  void end() {
    if (relay_)
      caf::anon_send_exit(std::exchange(relay_, nullptr), caf::exit_reason::user_shutdown);
  }
  caf::actor relay_;
  std::shared_ptr<std::function<void()>> on_answer_;
};

/// The run's actors as the head sees them: their handles, incarnations and deaths, and the head's
/// mailbox. One thread; all waits have deadlines.
class RunActors {
public:
  /// Handlers of messages other than answers, called within take_messages().
  struct Events {
    // with the number of connections that the head's port has refused
    std::function<void(const UpdatePtr&, std::int64_t refused)> updated = {};
    std::function<void(const ActorKey&, const std::string& what)> lost = {}; // will be restarted
    std::function<void(std::uint64_t number, const ProtoBytes& request, const ProtoBytes& order)>
        requested = {};                  // by the run's operators
    std::function<void()> starting = {}; // called before an actor starts that did not exist before
    std::function<bool()> stalled = {};  // whether time is up and nothing progresses
  };

  RunActors(const RunContext& context, Events events);
  ~RunActors(); // stops all actors
  RunActors(const RunActors&) = delete;
  RunActors& operator=(const RunActors&) = delete;

  /// Starts supervisor, metrics and checkpointer. In an operated run also starts the control actor
  /// and opens the port that processes and operators connect to.
  void start_services(int environment_actors);
  const SupervisorActor& supervisor() const { return *supervisor_; }
  const MetricsActor& metrics() const { return *metrics_; }
  const CheckpointerActor& checkpointer() const { return *checkpointer_; }
  const std::optional<ControlActor>& control() const { return control_; }

  /// Throws RunFailed if the actor is not up.
  const caf::actor& at(const ActorKey& key) const;
  bool is_up(const ActorKey& key) const { return up_.contains(key); }
  std::vector<caf::actor> all(Role role) const;
  std::vector<ActorKey> keys(Role role) const;
  std::uint64_t incarnation(const ActorKey& key) { return incarnations_[key]; }

  void spawn(const ActorKey& key, std::int64_t steps_before);
  /// Adds the actor to the metrics and to checkpoints.
  void subscribe(const ActorKey& key);
  /// Gives an actor up; the next one is another incarnation. With `restart` it joins lost().
  void forget(const ActorKey& key, bool restart);
  /// Actors that died and wait to be restarted.
  std::set<ActorKey>& lost() { return lost_; }
  /// Whether a signal or an operator has requested a stop.
  bool stopping() const { return context_.stop || stop_requested_; }
  /// The death that ends the run, or empty.
  const std::string& first_cause() const { return first_cause_; }
  /// Describes the current request; empty between requests.
  const std::string& asking() const { return asking_; }

  template <class Receiver, class... Args>
  void send(const Receiver& to, Args&&... args) {
    self_->send(to, std::forward<Args>(args)...);
  }
  /// Sends a request without waiting; `then(answer, error)` runs within take_messages().
  template <class Answer, class Receiver, class Then, class... Args>
  [[nodiscard]] PendingRequest request(const Receiver& to, std::chrono::milliseconds deadline,
                                       Then then, Args&&... args);
  /// Sends a request and waits, handling other messages meanwhile. Throws RunFailed with `what` and
  /// the reason, or with the actor's death that caused it; throws ActorLost if a dead actor will be
  /// restarted. In rounds only the evaluator may be restarted, and its death ends only requests to
  /// it, because the others cannot be repeated there.
  template <class Answer, class Receiver, class... Args>
  Answer ask(const Receiver& to, std::chrono::milliseconds deadline, const std::string& what,
             Args&&... args);
  /// `one_step`: an actor that does not answer within the step is an error. `patient`: for actors
  /// that may wait for data or lack processor time. One that is alive is asked again after each
  /// step, and the time so far is logged; only once the run stops or has stalled, a step without an
  /// answer is an error. The actors must accept repetitions of the request. `uninterrupted`: like
  /// one_step, but no death ends it, because the actor answers in any case.
  enum class Wait : std::uint8_t { one_step, patient, uninterrupted };
  /// Like ask(), for several actors at once.
  template <class Answer, class... Args>
  std::vector<Answer> ask_all(const std::vector<caf::actor>& to, Wait wait,
                              std::chrono::milliseconds step, const std::string& what,
                              const Args&... args);
  /// Waits for a message and handles all that have arrived. Throws RunFailed after a death that
  /// ends the run.
  void take_messages(std::chrono::milliseconds at_most);
  /// Sets the task options of all environment actors, including actors that start later.
  void change_task(std::vector<std::string> options);
  const std::vector<std::string>& task_options() const { return task_options_; }
  /// For the next head: writes which processes exist and where they look for it.
  void write(wire::HeadRecord& record, int environment_actors) const;
  void write(wire::RunState& state) const;

private:
  bool asks_evaluator(const std::vector<caf::actor>& asked) const;
  void log_wait(const std::string& what, std::chrono::milliseconds so_far) const;
  void on_lost(const ActorKey& key, const std::string& reason, bool may_restart);
  void open_remoting();
  void publish();
  void send_task(const ActorKey& key);
  void fail(const std::string& what, const caf::error& problem);

  const RunContext& context_;
  Events events_;
  caf::scoped_actor self_;
  std::unique_ptr<Remoting> remoting_; // null unless the run is operated
  std::optional<SupervisorActor> supervisor_;
  std::optional<MetricsActor> metrics_;
  std::optional<CheckpointerActor> checkpointer_;
  std::optional<ControlActor> control_; // null unless the run is operated
  std::uint16_t port_ = 0;
  std::uint64_t epoch_ = 0;
  std::map<ActorKey, caf::actor> up_;
  std::map<ActorKey, std::uint64_t> incarnations_; // number of earlier starts of each actor
  struct Place {
    std::string endpoint;
    std::int32_t process = 0;
  };
  std::map<ActorKey, Place> places_; // last known places
  std::set<ActorKey> lost_;
  std::vector<std::string> task_options_; // in force
  std::uint64_t questions_ = 0;
  std::map<std::uint64_t, std::weak_ptr<std::function<void()>>> answered_;
  std::string first_cause_;
  std::string asking_;
  bool stop_requested_ = false;
  bool changed_ = false; // incarnations_ has changed since events_.starting
};

/// Asks an actor to restore its part of a checkpoint, and waits until it has.
void load(RunActors& actors, const ActorKey& key, const std::filesystem::path& path);

template <class Answer, class Receiver, class Then, class... Args>
PendingRequest RunActors::request(const Receiver& to, std::chrono::milliseconds deadline, Then then,
                                  Args&&... args) {
  struct Outcome {
    Answer answer{};
    caf::error problem;
  };
  auto outcome = std::make_shared<Outcome>(); // used by the relay until it has sent answer_atom
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
  auto on_answer = std::make_shared<std::function<void()>>(
      [outcome, then = std::move(then)] { then(outcome->answer, outcome->problem); });
  answered_[question] = on_answer;
  return {context_.system.spawn(relay_question, caf::actor_cast<caf::actor>(to),
                                std::forward<Args>(args)...),
          std::move(on_answer)};
}

template <class Answer, class Receiver, class... Args>
Answer RunActors::ask(const Receiver& to, std::chrono::milliseconds deadline,
                      const std::string& what, Args&&... args) {
  return ask_all<Answer>({caf::actor_cast<caf::actor>(to)}, Wait::one_step, deadline, what,
                         std::forward<Args>(args)...)[0];
}

template <class Answer, class... Args>
std::vector<Answer> RunActors::ask_all(const std::vector<caf::actor>& to, Wait wait,
                                       std::chrono::milliseconds step, const std::string& what,
                                       const Args&... args) {
  std::vector<Answer> answers(to.size());
  std::vector<PendingRequest> requests(to.size());
  std::vector<int> steps(to.size()); // without an answer
  std::vector<std::size_t> late;     // actors to ask again
  std::size_t missing = to.size();
  caf::error problem;
  const auto ask_one = [&](std::size_t i) {
    requests[i] = request<Answer>(
        to[i], step,
        [&, i](Answer& answer, caf::error& error) {
          const bool waits_on = !stopping() && !(events_.stalled && events_.stalled());
          if (wait == Wait::patient && error == caf::sec::request_timeout && waits_on)
            return late.push_back(i);
          --missing;
          if (error)
            problem = std::move(error);
          else
            answers[i] = std::move(answer);
        },
        args...);
  };
  for (std::size_t i = 0; i < to.size(); ++i)
    ask_one(i);
  asking_ = what;
  const std::unique_ptr<std::string, void (*)(std::string*)> asked(
      &asking_, [](std::string* text) { text->clear(); });
  const bool interruptible =
      wait != Wait::uninterrupted && (!context_.config.in_rounds() || asks_evaluator(to));
  int logged = 0;
  while (missing > 0 && !problem) {
    take_messages(kPoll);
    if (!lost_.empty() && interruptible)
      throw ActorLost();
    for (const std::size_t i : std::exchange(late, {})) {
      if (++steps[i] > logged)
        log_wait(what, step * ++logged);
      ask_one(i);
    }
  }
  if (problem)
    fail(what, problem);
  return answers;
}

} // namespace troupe::actors
