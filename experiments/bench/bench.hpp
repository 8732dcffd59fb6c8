#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace troupe::experiments {

using FigureConfig = std::map<std::string, std::string>;

/// One figure of a benchmark: the median, least and greatest value of the repetitions. It is
/// printed as one JSON object per line.
struct Figure {
  std::string bench;  // name of the stage: "environment", "pool", "render", "wire", "replay", …
  std::string metric; // what is measured, in words
  double value = 0;
  double minimum = 0;
  double maximum = 0;
  std::string unit; // "items/s"
  FigureConfig config;
};

struct BenchOptions {
  double seconds = 1;               // per repetition
  int repetitions = 3;              // the median is reported
  std::string models;               // folder of the suite's XML files; empty: the build's
  std::vector<std::string> tasks{}; // stages pool, render, replay_disk (codecs): only these; empty:
                                    // a selection
  std::string pool{};       // stage pool: only "256/128/2" (environments, batch, threads); empty: a
                            // selection
  std::vector<int> sizes{}; // stage render: height and width in pixels; empty: 84
  std::string join{};       // the seat of a process that a stage started
  std::string precision{};  // stage learner: "float32" or "bfloat16"; empty: each agent's default
  std::string vectors{};    // stage render: the caster's instruction set, e.g. "AVX2"; empty: the
                            // widest
  std::string data{};       // stage data: an image folder; empty: one is generated
  std::string device{};     // stages learner, classifier: only "cpu" or "cuda"; empty: every
                            // available device
  std::string timeline{};   // stage ddp: path of its Chrome trace; empty: none
};

using Report = std::function<void(const Figure&)>;

/// Calls `chunk`, which works and returns the amount of work, repeatedly for options.seconds, and
/// does so options.repetitions times. Returns the work per second of each repetition.
std::vector<double> measure_rates(const BenchOptions& options,
                                  const std::function<double()>& chunk);

/// Whether a stage that runs networks also measures on the first GPU. Throws std::runtime_error if
/// options ask for a GPU and there is none.
bool wants_gpu(const BenchOptions& options);

/// The median of `values` (at least one).
double median_of(std::vector<double> values);

/// Reports the median, least and greatest of `values` (at least one).
void report_values(const Report& report, const std::string& bench, const std::string& metric,
                   const std::string& unit, const std::vector<double>& values,
                   const FigureConfig& config = {});

void bench_environment(const BenchOptions& options,
                       const Report& report); // control steps/s, resets/s
void bench_pool(const BenchOptions& options,
                const Report& report); // control steps/s of environment pools, their slowest steps
void bench_games(const BenchOptions& options,
                 const Report& report); // steps/s of the tasks without MuJoCo, in pools
void bench_remote(const BenchOptions& options,
                  const Report& report); // microseconds per round trip and step, by kind of peer
void bench_render(const BenchOptions& options, const Report& report); // frames/s
void bench_replay(const BenchOptions& options,
                  const Report& report); // items/s in one process, between processes, with shards
void bench_replay_disk(
    const BenchOptions& options,
    const Report& report); // spilling, checkpoints, storage, codecs, large tables
void bench_wire(const BenchOptions& options,
                const Report& report); // messages/s between processes: tcp, ipc, shared memory
void bench_collectives(const BenchOptions& options,
                       const Report& report); // all_reduce latency, GB/s
void bench_collective_faults(const BenchOptions& options,
                             const Report& report); // ms until surviving ranks name a lost rank
void bench_ddp(const BenchOptions& options,
               const Report& report); // ResNet-50 images/s with 1 and 2 processes, scaling
void bench_data(const BenchOptions& options,
                const Report& report); // images/s from JPEGs to batches, one thread
void bench_learner(const BenchOptions& options,
                   const Report& report); // updates/s of D4PG, DrQ-v2 and MR.Q
void bench_classifier(const BenchOptions& options,
                      const Report& report); // ResNet-50 images/s, optimizer steps/s
void bench_strategies(const BenchOptions& options,
                      const Report& report); // cost of a slow replica in ms, of staleness in error
void bench_off_policy(const BenchOptions& options,
                      const Report& report); // how often intervals of evaluate --on hold the truth
void bench_agent(const BenchOptions& options,
                 const Report& report); // cheetah_run end to end, agent steps/s

} // namespace troupe::experiments
