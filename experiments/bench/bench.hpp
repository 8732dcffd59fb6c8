#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace troupe::experiments {

/// One figure of a benchmark: median, least and greatest of the repetitions; printed as one JSON
/// object per line.
struct Figure {
  std::string bench;  // the stage: "environment", "pool", "render", "wire", "replay", …
  std::string metric; // what is counted, in words
  double value = 0;
  double minimum = 0;
  double maximum = 0;
  std::string unit; // "items/s"
  std::map<std::string, std::string> config;
};

struct BenchOptions {
  double seconds = 1;               // per repetition
  int repetitions = 3;              // the median is reported
  std::string models;               // folder of the suite's XML files; empty: the build's
  std::vector<std::string> tasks{}; // pool, render, replay_disk (codecs): these; empty: some
  std::string pool{};       // pool: "256/128/2" environments, batch and threads alone; empty: some
  std::vector<int> sizes{}; // render: height and width in pixels; empty: 84
  std::string join{};       // collectives: the seat of a process that the stage started
  std::string vectors{};    // render: the caster's, e.g. "AVX2"; empty: the widest
  std::string data{};       // data: an image folder; empty: one is made
  std::string device{};     // learner, classifier: "cpu" or "cuda" alone; empty: what there is
  std::string timeline{};   // ddp: where its Chrome trace is written; empty: nowhere
};

using Report = std::function<void(const Figure&)>;

/// Calls `chunk` (which does work and returns how much) for options.seconds, options.repetitions
/// times; gives the figure of work per second.
Figure measure_rate(const BenchOptions& options, const std::string& bench,
                    const std::string& metric, const std::string& unit,
                    const std::function<double()>& chunk);

/// Whether a stage of networks measures on the first GPU, too. Throws std::runtime_error where that
/// is wanted and there is none.
bool wants_gpu(const BenchOptions& options);

/// Median, least and greatest of `values` (at least one), without names.
Figure median_of(std::vector<double> values);

void bench_environment(const BenchOptions& options,
                       const Report& report); // control steps/s, resets/s
void bench_pool(const BenchOptions& options,
                const Report& report); // control steps/s of environment pools, slowest steps
void bench_games(const BenchOptions& options,
                 const Report& report); // steps/s of the tasks without MuJoCo, in pools
void bench_remote(const BenchOptions& options,
                  const Report& report); // microseconds per turn and step, C++ and Python peers
void bench_render(const BenchOptions& options, const Report& report); // frames/s
void bench_replay(
    const BenchOptions& options,
    const Report& report); // items/s in process, between processes and of several shards; copies
void bench_replay_disk(
    const BenchOptions& options,
    const Report& report); // spilling, checkpoints, storage, codecs, large tables
void bench_wire(const BenchOptions& options,
                const Report& report); // messages/s between processes: tcp, ipc, shared memory
void bench_collectives(const BenchOptions& options,
                       const Report& report); // all_reduce latency, GB/s
void bench_collective_faults(const BenchOptions& options,
                             const Report& report); // ms until survivors name a lost rank
void bench_ddp(const BenchOptions& options,
               const Report& report); // ResNet-50 images/s of 1 and 2 processes, scaling
void bench_data(const BenchOptions& options,
                const Report& report); // pictures/s from JPEGs to batches, one thread
void bench_learner(const BenchOptions& options,
                   const Report& report); // updates/s of D4PG, DrQ-v2 and MR.Q
void bench_classifier(const BenchOptions& options,
                      const Report& report); // ResNet-50 images/s, optimizer steps/s
void bench_strategies(const BenchOptions& options,
                      const Report& report); // a slow replica's cost in ms, staleness's in error
void bench_off_policy(const BenchOptions& options,
                      const Report& report); // how often intervals of evaluate --on hold the truth
void bench_agent(const BenchOptions& options,
                 const Report& report); // cheetah_run end to end, agent steps/s

} // namespace troupe::experiments
