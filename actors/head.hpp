#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages.hpp"
#include "actors/metrics_actor.hpp"
#include "actors/remoting.hpp"
#include "actors/run.hpp"
#include "actors/system.hpp"
#include "replay/spec.hpp"

namespace troupe::actors {

/// The one that leads a run: starts its actors through the supervisor, grants steps and updates,
/// calls for evaluations and checkpoints, and ends it. A blocking script on the caller's thread;
/// every wait has a deadline. Throws RunFailed with the first cause.
class RunFailed : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Somebody that a request needs died and is to be started again: what was under way must be begun
/// anew.
class Disturbed : public std::exception {};

/// Who waits for an answer for us: ends with this, whether that came or not. One that still waits
/// for the dead when its actor system goes would crash it (CAF 0.17).
class Relay {
public:
  Relay() = default;
  explicit Relay(caf::actor who) : who_(std::move(who)) {}
  ~Relay() { end(); }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  Relay(Relay&&) = delete;
  Relay& operator=(Relay&& other) noexcept {
    end();
    who_ = std::exchange(other.who_, nullptr);
    return *this;
  }

private:
  void end() {
    if (who_)
      caf::anon_send_exit(std::exchange(who_, nullptr), caf::exit_reason::user_shutdown);
  }
  caf::actor who_;
};

class Head {
public:
  Head(caf::actor_system& system, const RunConfig& config,
       const replay::TransitionSpec& transitions, std::filesystem::path folder,
       std::filesystem::path resume_from, const Deployment& deployment,
       const RunCallbacks& callbacks, const std::atomic<bool>& stop);
  ~Head();

  RunResult run();

private:
  using Clock = std::chrono::steady_clock;
  using Key = std::pair<Role, std::int32_t>;

  // starting (head_start.cpp)
  void start_services();
  void start_role(Role role);
  void spawn(Role role, std::int32_t index);
  void restore_servers(); // before the learners begin, who take their parameters from them
  void restore();
  void restore_replay(); // these three: head_checkpoint.cpp
  void restore_environments();
  bool goes_on(std::int32_t environment) const;
  void load(Role role, std::int32_t index, const std::filesystem::path& path);
  void restart_lost();
  void make_as_before(Role role, std::int32_t index);
  std::filesystem::path learner_state() const; // for learners that begin anew; or empty
  void subscribe(Role role, std::int32_t index);
  void begin_training();

  // when somebody dies (head_recovery.cpp)
  void on_lost(Role role, std::int32_t index, const std::string& reason, bool may_restart);
  void await_restarts(); // of all that are returning, or for another death
  void recover();
  void begin_anew(Role role, std::int32_t index);
  void rescue_learners(); // head_checkpoint.cpp
  template <class Body>
  void persist(const Body& body); // until nobody that it needs dies meanwhile

  // who operates the run (head_control.cpp)
  struct Request {
    std::uint64_t number = 0;
    wire::ControlRequest told;
    std::deque<Key> processes = {}; // still to be started anew
    Clock::time_point deadline = {};
    std::int64_t restarted = 0;
  };
  void take_request(std::uint64_t number, const Encoded& request, const Encoded& order);
  void serve_requests();
  std::string scale_to(std::int32_t wanted, std::string& text);
  std::string restart_next(Request& request, std::string& text);
  std::string restart_together(std::vector<Key> group);
  std::string write_snapshots(const std::vector<Key>& group);
  void start_those();
  void send_away(const std::vector<Key>& group);
  void write_snapshot(Role role, std::int32_t index);
  void tell_control(const UpdatePtr& update);
  void note_failure(const std::string& what);
  int count(Role role) const;
  std::vector<std::int32_t> indices(Role role) const;
  bool stopping() const { return stop_ || told_to_stop_; }

  // training (head.cpp)
  void train_free();
  void train_in_rounds();
  void train_on_data();
  void grant_learners(std::int64_t updates);
  void wait_for_learners();
  void extend_grants();
  void share_steps();
  void grant_environments();
  void pause();
  void unpause();
  bool time_to_stop() const;
  bool in_motion() const { return !config_.deterministic || config_.workload; } // until pause()
  std::int64_t lanes() const;
  std::int64_t steps_granted(std::int32_t environment_actor) const;

  // now and then
  void maybe_evaluate();
  bool reached_goal(); // confirms with the final episodes; true: finished
  void maybe_checkpoint();
  void capture_checkpoint();
  wire::RunState state_now(); // these three: head_checkpoint.cpp
  void note_evaluation(const Evaluated& evaluated);
  void score_last(const RunResult& result);
  std::string written_checkpoint(); // waits for it
  Evaluated evaluate(int episodes, std::uint64_t minimum_version, bool final);
  Evaluated evaluate_learners(bool final); // by all of them together, on data
  void finish(RunResult& result);

  // messages
  void
  take_messages(std::chrono::milliseconds at_most); // handles one message, or none in that time
  void on_update(const UpdatePtr& update);
  std::string standstill(const Update& update) const;
  void on_written(const std::string& path, const std::string& problem);
  void refresh(); // asks everybody for their counters anew
  void log(const std::string& level, const std::string& text) const;
  const caf::actor& actor(Role role, std::int32_t index) const;
  template <class Answer, class... Args>
  Answer ask(const caf::actor& who, std::chrono::seconds deadline, const std::string& what,
             Args&&... args);
  std::vector<caf::actor> all(Role role) const;

  caf::actor_system& system_;
  const RunConfig& config_;
  replay::TransitionSpec transitions_;
  std::filesystem::path folder_, resume_from_;
  const Deployment& deployment_;
  const RunCallbacks& callbacks_;
  const std::atomic<bool>& stop_;
  caf::scoped_actor self_;

  std::unique_ptr<Remoting> remoting_; // where there are processes
  std::optional<SupervisorActor> supervisor_;
  std::optional<MetricsActor> metrics_;
  std::optional<CheckpointerActor> checkpointer_;
  std::optional<ControlActor> control_; // where there are processes
  std::uint16_t port_ = 0;
  std::map<Key, caf::actor> up_;
  std::map<Key, std::uint64_t> incarnations_; // how often each was started before
  std::set<Key> to_restart_;
  std::set<Key> to_start_;  // that were sent away, or are new: nobody was disturbed by them
  std::set<Key> returning_; // started again, and not yet as they were
  std::map<Key, std::int64_t> steps_made_; // per environment, at the last pause
  Relay evaluation_relay_, writing_relay_;
  std::uint64_t questions_ = 0;     // asked so far
  std::set<std::uint64_t> answers_; // to them, that came

  wire::RunState before_; // a resumed run's counters
  Progress progress_;
  wire::RunState counters_;
  std::string first_cause_;
  bool training_ = false;
  bool paused_ = true;
  bool begun_ = false;          // everybody is as the checkpoint says, or new
  std::int64_t lane_steps_ = 0; // granted to each environment, in a deterministic run
  std::int64_t updates_granted_ = 0;
  std::int64_t next_evaluation_ = 0; // environment steps, or updates on data
  bool evaluating_ = false;
  std::deque<Evaluated> evaluations_; // answers that came while training
  Clock::time_point last_checkpoint_ = Clock::now();
  Clock::time_point last_report_ = Clock::now();
  Clock::time_point last_movement_ = Clock::now();
  std::uint64_t newest_update_ = 0;
  std::int64_t moved_ = -1;
  bool each_may_do_all_ = false; // environment actors: the steps of others that are left
  std::string last_checkpoint_path_;
  bool writing_ = false;           // a checkpoint, while the run goes on
  bool checkpoint_wanted_ = false; // of one of the best evaluations
  std::optional<std::pair<double, std::int64_t>> unsaved_evaluation_; // mean return, updates
  std::optional<std::vector<double>> best_returns_; // of this run's checkpoints; read when needed

  int environments_; // actors
  bool told_to_stop_ = false;
  bool started_ = false, ending_ = false;
  std::deque<Request> requests_;
  std::string asking_; // what for, while it waits for an answer
  std::deque<std::pair<Clock::time_point, std::string>> failures_;
  Clock::time_point began_ = Clock::now();
  Clock::time_point still_since_ = Clock::now(); // when something moved last
  Clock::time_point checkpoint_written_ = Clock::now();
};

} // namespace troupe::actors
