#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "env/environment_config.hpp"
#include "learner/agents/agent.hpp"
#include "learner/agents/training_config.hpp"
#include "learner/histogram.hpp"
#include "learner/replicas/replica.hpp"

namespace caf {
class actor;
class actor_system;
} // namespace caf

namespace troupe::actors {

/// The checked configuration of a run. Plain data; `experiments/` builds it from an experiment
/// file.
struct RunConfig {
  std::uint64_t seed = 1;
  bool deterministic = false;
  env::EnvironmentConfig environment;
  learner::AgentPtr agent; // null with a workload
  /// Makes a replica with its own data (Replica::input_fn) and its own evaluation
  /// (Replica::evaluate). Such a run has only learners and parameter servers, and ignores
  /// environment, agent, replay and actors. Empty: the agent learns in the environment. Called in
  /// each learner's process, on its thread.
  std::function<std::unique_ptr<learner::Replica>()> workload;
  /// Starts a CompanionActor (protocol/messages.hpp) of the program that embeds the run. It gets
  /// the episodes that ended and may change the task options of the environment actors; evaluations
  /// keep environment.options. Only for runs in one process. Empty: none.
  std::function<caf::actor(caf::actor_system&)> companion;
  /// A folder of recorded episodes (replay/recordings) that fills replay at the start. Such a run
  /// has no environment actors, and actors.environment is 0. Empty: none.
  std::filesystem::path recording;
  /// Whether environment actors play. If not, stop.updates is the run's length.
  bool plays() const { return !workload && recording.empty(); }
  /// Whether environments and learners take turns.
  bool in_rounds() const { return deterministic && !workload; }
  /// Whether the agent uses its items in order, from a queue.
  bool on_policy() const { return !workload && agent->storage().on_policy; }
  /// Agent steps at the start of the run with random actions, over all actors. Queues of items have
  /// none, because their agents learn only from the policy's own actions.
  std::int64_t random_steps() const { return on_policy() ? 0 : actors.random_steps; }

  struct Replay {
    int shards = 1;
    std::int64_t capacity_items = 1'000'000; // over all shards
    std::int64_t capacity_bytes = std::int64_t{4} << 30;
    std::int64_t minimum_items = 1000;
    double samples_per_insert = 32;
    double error_buffer = 0; // samples; 0: a tenth of minimum_items * samples_per_insert
    int n_step = 5;
    double discount = 0.99;
    std::string sampler = "uniform", remover = "fifo"; // replay::SelectorKind by name
    double priority_exponent = 0.6;
    double priority_fade = 1; // factor per item inserted since; 1: priorities do not fade
    double least_priority_fade = 0.1;
    double importance_exponent = 0.4;          // initial exponent of the weights; it grows to 1
    std::int64_t importance_updates = 100'000; // updates until it is 1; 0: it stays constant
    std::int64_t max_times_sampled = 0;
    /// Relabelled goals, for an environment that can compute the reward of another goal
    /// (replay::Hindsight).
    struct Hindsight {
      int goals = 0;                   // relabelled transitions per transition; 0: none
      std::string strategy = "future"; // replay::GoalStrategy by name
    } hindsight;
    std::string compression = "none"; // replay::Compression by name
    std::int64_t disk_bytes = 0; // maximum size of chunks above capacity_bytes on disk; 0: none
    std::filesystem::path disk_folder; // where they are stored; required unless disk_bytes is 0
  } replay;

  struct Learner {
    int replicas = 1;
    int threads = 1;         // of each replica
    int publish_period = 10; // updates
    int prefetch = 2;        // batches
    int gather_threads = 1;  // of each replica, concurrent with its update
    /// Between processes "shared_memory", "tcp" or "nccl"; within one "threads". "auto" selects
    /// one.
    std::string backend = "auto";
    /// "cpu" or "cuda". "auto" uses a GPU if there is one and the run need not be deterministic.
    std::string device = "auto";
    std::string strategy =
        "multi_worker"; // syntax of learner::parse_strategy(), without replicas, backend, servers
    int parameter_servers = 1; // shards, for strategies with servers
    learner::TrainingConfig training{};
    std::filesystem::path server_folder; // snapshots from which a restarted server continues;
                                         // empty: it starts with a learner's parameters
  } learner;

  struct Actors {
    int environment = 2;
    int environments_per_actor = 1;
    int threads_per_actor = 1;        // to step its environments
    std::int64_t random_steps = 1000; // agent steps, over all actors
    int restarts = 3;                 // of each actor, within supervision.restart_minutes
  } actors;

  /// Supervision of actors in separate processes.
  struct Supervision {
    double restart_minutes = 10;  // within which each actor may restart `actors.restarts` times
    double heartbeat_seconds = 1; // between a node's heartbeats
    double lost_seconds = 15;     // after which a silent node or a frozen process is lost
    double snapshot_seconds = 30; // between snapshots from which a shard or learner restarts
    std::filesystem::path folder; // of the snapshots; empty: none
  } supervision;

  struct Evaluation {
    std::int64_t period = 10'000; // environment steps, or updates unless plays(); 0: at the end
    int episodes = 3;
    int final_episodes = 10;
  } evaluation;

  struct Stop {
    std::int64_t environment_steps = 1'000'000;
    std::int64_t updates = 0;     // unless plays(): the run's length
    double minutes = 0;           // of training; 0: no limit
    double evaluation_return = 0; // 0: off
  } stop;

  struct Checkpoint {
    double minutes = 10; // 0: only at the end
    int keep = 2;        // the newest
    int keep_best = 0;   // further ones, with the greatest evaluation returns
    bool replay = true;
    std::string store; // s3://bucket/prefix to copy each checkpoint to; empty: none
  } checkpoint;
};

/// Counters and rates of a run, reported twice a second and at the end. Rates are means over the
/// last ten seconds, because a slow or starved run moves in bursts.
struct Progress {
  std::int64_t environment_steps = 0; // of the simulator's control loop
  std::int64_t agent_steps = 0;
  std::int64_t episodes = 0;
  std::int64_t updates = 0;      // of the first replica
  std::int64_t most_updates = 0; // of the replica with the most
  std::int64_t inserts = 0;      // items
  std::int64_t samples = 0;      // items; rows where learners have their own data
  std::int64_t frames = 0;       // rendered
  std::int64_t replay_items = 0;
  std::int64_t replay_bytes = 0;         // in memory
  std::int64_t replay_disk_bytes = 0;    // steps that do not fit in memory
  std::int64_t replay_failed_spills = 0; // chunks that a full or failing disk refused
  std::int64_t failed_copies = 0;        // failed copies of checkpoints to checkpoint.store
  std::int64_t taken_over = 0; // processes taken over by later heads since the start or resumption
  std::int64_t refused_connections = 0; // at the head's port since the head's start
  std::int64_t priorities = 0;          // updates of items' priorities
  std::int64_t parameter_version = 0;
  double parameter_lag = 0;     // in updates, mean over the actors' last steps
  double training_seconds = 0;  // excludes evaluation pauses
  double processor_seconds = 0; // of all processes, including before a resumption
  double environment_steps_per_second = 0;
  double updates_per_second = 0;
  double samples_per_second = 0;
  double frames_per_second = 0; // rendered
  double episode_return = 0;    // mean of the last ten training episodes; NaN before the first
  std::int64_t insertions_in_flight = 0; // made, but not accepted by a shard yet
  std::int64_t waiting_insertions = 0;   // requests that wait for rate limiters
  std::int64_t waiting_samples = 0;      // likewise
  std::int64_t ready_batches = 0;        // full, and waiting for their learners' next updates
  std::map<std::string, double> learner; // latest metrics of the learner
  /// Time per stage: "learner.sample", "learner.update", "environment.step", …
  std::map<std::string, double> seconds;
  /// Time per stage of one actor since its last start.
  struct ActorTime {
    std::string role = {};
    int index = 0;
    std::map<std::string, double> seconds = {};
  };
  struct ActorTimes {
    std::vector<ActorTime> actors = {}; // at most 64 of each role
    std::int64_t left_out = 0;          // number of the others
  };
  std::shared_ptr<const ActorTimes> actor_times; // null: none; taken twice a second
  /// Counters of one replay shard since its start.
  struct Shard {
    int index = 0;
    std::int64_t items = 0, bytes = 0, inserted = 0, sampled = 0;
    std::string waiting = {}; // which requests wait and for what; empty: none
  };
  std::vector<Shard> shards;
  std::vector<std::string> waits; // what each actor waits for, and which actors do not answer
};

/// An RGB image of shape [height, width, 3].
struct Picture {
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> rgb = {};
};

/// Histograms of a run at one moment, by name, for example "actions/0" or
/// "parameters/critic.0.weight".
struct Distributions {
  std::int64_t environment_steps = 0;
  std::int64_t updates = 0;
  std::map<std::string, learner::Histogram> histograms = {};
};

struct Evaluated {
  std::int64_t environment_steps = 0;
  std::int64_t updates = 0;
  double training_seconds = 0;
  double processor_seconds = 0;
  std::vector<double> returns = {};
  bool final = false;
  /// For a workload with its own data, the results of Replica::evaluate() and its pictures. For a
  /// diagnosed agent, the difference between its critic and the first episode's returns
  /// (value_errors()).
  std::map<std::string, double> metrics = {};
  std::map<std::string, Picture> pictures = {};
};

/// How a run reports to its owner. All functions are called on one thread.
struct RunCallbacks {
  std::function<void(const Progress&)> progress = {};
  std::function<void(const Evaluated&)> evaluated = {};
  std::function<void(const std::string& level, const std::string& text)> log =
      {}; // "info", "warning", "error"
  /// A training episode ended; `length` is in environment steps.
  std::function<void(std::int64_t environment_steps, double episode_return, std::int64_t length)>
      episode = {};
  /// Histograms of actions and parameters, at evaluations and checkpoints.
  std::function<void(const Distributions&)> distributions = {};
};

} // namespace troupe::actors
