#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/cluster_keys.hpp"
#include "actors/placer.hpp"
#include "env/make.hpp"
#include "learner/replica.hpp"
#include "learner/workloads/d4pg.hpp"

namespace troupe::actors {

/// Everything a run is made of, checked. Plain data; built from an experiment file by experiments/.
struct RunConfig {
  std::uint64_t seed = 1;
  bool deterministic = false;
  env::EnvironmentConfig environment;
  learner::D4pgConfig agent;
  /// Makes a replica that brings its own data (Replica::input_fn) and measures itself
  /// (Replica::evaluate): such a run has learners and parameter servers alone, and neither
  /// environment, agent, replay nor actors matter. Empty: D4PG in the environment. Called on each
  /// learner's thread, in its process.
  std::function<std::unique_ptr<learner::Replica>()> workload;

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
    double importance_exponent = 0.4;          // of the weights at first; it grows to 1
    std::int64_t importance_updates = 100'000; // while it grows; 0: it stays
    std::int64_t max_times_sampled = 0;
    std::string compression = "none";  // replay::Compression by name
    std::int64_t disk_bytes = 0;       // of steps that memory has no room for; 0: none
    std::filesystem::path disk_folder; // for them; needed where disk_bytes is not 0
  } replay;

  struct Learner {
    int replicas = 1;
    int threads = 1;         // of each replica
    int publish_period = 10; // updates
    int prefetch = 2;        // batches
    int gather_threads = 1;  // of each replica, beside its update
    /// Between processes: "shared_memory", "gloo", "nccl"; within one: "threads". "auto" takes one.
    std::string backend = "auto";
    /// "cpu", "cuda"; "auto": a GPU where there is one, for a run that need not be deterministic.
    std::string device = "auto";
    std::string strategy =
        "multi_worker";        // as learner::parse_strategy(), without replicas, backend, servers
    int parameter_servers = 1; // shards, of strategies that have them
    std::filesystem::path server_folder; // for their snapshots, from which one that died goes on;
                                         // empty: it begins with a learner's parameters
  } learner;

  struct Actors {
    int environment = 2;
    int environments_per_actor = 1;
    int threads_per_actor = 1;        // that step its environments
    std::int64_t random_steps = 1000; // agent steps, over all actors
    double noise_start = 0.2;
    double noise_end = 0.2;
    std::int64_t noise_steps = 1; // agent steps
    int restarts = 3;             // of each actor, within supervision.restart_minutes
  } actors;

  /// Of actors in processes of their own.
  struct Supervision {
    double restart_minutes = 10;  // in which `actors.restarts` of each actor are allowed
    double heartbeat_seconds = 1; // between a process's signs of life
    double lost_seconds = 15;     // without one; then it counts as dead
    double snapshot_seconds = 30; // between those that a shard or a learner comes back from
    std::filesystem::path folder; // for them; empty: none
  } supervision;

  struct Evaluation {
    std::int64_t period = 10'000; // environment steps, or updates on data; 0: only at the end
    int episodes = 3;
    int final_episodes = 10;
  } evaluation;

  struct Stop {
    std::int64_t environment_steps = 1'000'000;
    std::int64_t updates = 0;     // on data: the run's length
    double minutes = 0;           // of training; 0: no limit
    double evaluation_return = 0; // 0: off
  } stop;

  struct Checkpoint {
    double minutes = 10; // 0: only at the end
    int keep = 2;        // the newest
    int keep_best = 0;   // beside these, those of the greatest evaluation returns
    bool replay = true;
  } checkpoint;
};

/// Counters and rates of a run, twice a second and at the end. Rates are means since the last
/// report, `total_*` since the start.
struct Progress {
  std::int64_t environment_steps = 0; // of the simulator's control loop
  std::int64_t agent_steps = 0;
  std::int64_t episodes = 0;
  std::int64_t updates = 0;
  std::int64_t inserts = 0; // items
  std::int64_t samples = 0; // items; rows, where learners have data of their own
  std::int64_t frames = 0;  // rendered since the start or the resumption
  std::int64_t replay_items = 0;
  std::int64_t replay_bytes = 0;      // of memory
  std::int64_t replay_disk_bytes = 0; // of steps that memory has no room for
  std::int64_t priorities = 0;        // given to items
  std::int64_t parameter_version = 0;
  double parameter_lag = 0; // updates, mean over the actors' last steps
  double training_seconds =
      0; // without evaluation pauses: the environments' and learner's own time
  double environment_steps_per_second = 0;
  double updates_per_second = 0;
  double samples_per_second = 0;
  double frames_per_second = 0; // rendered
  double episode_return = 0;    // mean of the last ten training episodes; NaN before the first
  std::map<std::string, double> learner; // last metrics of the learner
  std::map<std::string, double> seconds; // where the time went, per stage: "learner.sample",
                                         // "learner.update", "environment.step", …
};

/// [height, width, 3].
struct Picture {
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> rgb = {};
};

struct Evaluated {
  std::int64_t environment_steps = 0;
  std::int64_t updates = 0;
  double training_seconds = 0;
  std::vector<double> returns = {};
  bool final = false;
  /// Of a workload with data of its own: what Replica::evaluate() gave, and the pictures.
  std::map<std::string, double> metrics = {};
  std::map<std::string, Picture> pictures = {};
};

/// What the run tells its owner; called on one thread, never at once.
struct RunCallbacks {
  std::function<void(const Progress&)> progress;
  std::function<void(const Evaluated&)> evaluated;
  std::function<void(const std::string& level, const std::string& text)>
      log; // "info", "warning", "error"
  /// An episode of training ended: return, length in environment steps.
  std::function<void(std::int64_t environment_steps, double episode_return, std::int64_t length)>
      episode;
};

/// A process of this host for one role of a run.
struct ProcessOrder {
  std::string role;
  int index = 0;
  std::uint64_t epoch = 0;       // of the head's life
  std::uint64_t incarnation = 0; // how often the actor was started before
  std::string head_host = "127.0.0.1";
  std::uint16_t head_port = 0;
  std::string address = "127.0.0.1"; // what it listens at
  std::filesystem::path config;      // the run's; empty: the one of who starts it
  CoreSet cores = {};                // to be pinned to; empty: any
  std::vector<int> gpus = {};        // that it sees; empty: all
};

/// Nodes on which a run's processes are.
struct DeploymentNodes {
  Placer placer;             // with those that are expected, and with the needs of all roles
  double join_seconds = 120; // until they are there; then the run begins with those that are
  bool pin = true;           // processes run on the cores that they were placed on alone
  /// Asked by any thread as the run ends; true: nodes end what runs on them and wait for the next
  /// head. Empty: the run is over for them, too.
  std::function<bool()> head_comes_back = {};
};

/// How a run is spread: without start_process and nodes everything is in this process.
struct Deployment {
  /// Starts a process of this host, which calls run_actor(), and returns its id.
  std::function<int(const ProcessOrder&)> start_process = {};
  std::optional<DeploymentNodes> nodes = {}; // in place of start_process
  std::string listen = "127.0.0.1";          // where the processes and nodes meet
  std::uint16_t head_port = 0;               // 0: a free one
  std::shared_ptr<const ClusterKeys> keys =
      nullptr; // needed where it is not the loopback interface
  std::function<void(std::uint16_t port)> listening = {}; // nodes may be started
};

inline bool has_processes(const Deployment& deployment) {
  return deployment.nodes || deployment.start_process;
}

struct RunResult {
  Progress progress;
  Evaluated evaluation;             // the final one; no returns when the run was stopped before
  bool interrupted = false;         // by `stop`
  std::string error;                // first cause; empty when the run did what it should
  std::filesystem::path checkpoint; // the last complete one; empty when there is none
};

/// Refuses what cannot be run, in one process or with one for each actor, before anything starts:
/// throws std::invalid_argument naming the key.
void check_run(const RunConfig& config, bool processes);

/// Reads and checks every byte of a checkpoint. Throws std::runtime_error naming the file and what
/// is wrong with it.
void verify_checkpoint(const std::filesystem::path& checkpoint);

/// What a run of this configuration cannot take over from a checkpoint, before anything is touched:
/// throws std::invalid_argument with key, value, rule and way out.
void check_resumption(const RunConfig& config, const std::filesystem::path& checkpoint);

/// Puts right what a process that was killed, or parts that were still written when another could
/// not be, have left in a run's folder of checkpoints; for whoever holds the run.
void clear_checkpoint_remains(const std::filesystem::path& checkpoints);

/// Trains until config.stop says so or `stop` becomes true; then evaluates, writes a checkpoint
/// under folder/checkpoints/<updates> and returns. `resume_from` is a checkpoint's folder or empty.
/// Blocks; throws std::invalid_argument or std::runtime_error for what is found wrong before the
/// first step.
RunResult run(const RunConfig& config, const std::filesystem::path& folder,
              const std::filesystem::path& resume_from, const Deployment& deployment,
              const RunCallbacks& callbacks, const std::atomic<bool>& stop);

/// The body of such a process: plays its role until its head tells it to go or is gone. Returns the
/// exit code.
int run_actor(const RunConfig& config, const ProcessOrder& order,
              const std::shared_ptr<const ClusterKeys>& keys = nullptr);

/// One host of a run.
struct NodeConfig {
  std::string head_host = "127.0.0.1";
  std::uint16_t head_port = 0;
  NodeResources resources = {}; // with name and address
  std::shared_ptr<const ClusterKeys> keys = nullptr;
  double join_seconds = 120; // until the head has let it in, at first and when it was away
  std::function<int(const ProcessOrder&)> start_process = {}; // with the run's `config`
  std::function<void(const std::string& text)> log = {};
};

/// The body of `troupe node`: starts and ends processes of this host as the head says, until it
/// says that the run is over (0). A node whose head is silent, or says that it counted as lost,
/// ends its processes and joins anew. No process outlives it. Throws std::invalid_argument; when it
/// cannot join, or `stop` becomes true before the run is over, std::runtime_error.
int run_node(const NodeConfig& config, const std::atomic<bool>& stop);

} // namespace troupe::actors
