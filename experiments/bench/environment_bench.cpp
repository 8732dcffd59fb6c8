#include <string>

#include "experiments/bench/bench.hpp"
#include "experiments/bench/bench_player.hpp"

namespace troupe::experiments {

namespace {

constexpr int kChunk = 2000; // control steps of one thread between two readings of the clock

void bench_task(const BenchOptions& options, const Report& report, const std::string& task) {
  const FigureConfig one_thread{{"task", task}, {"threads", "1"}};
  BenchPlayers floor(task, options.models, 1);
  const auto plain =
      measure_rates(options, [&] { return floor.at_once(&BenchPlayer::play_plain, kChunk); });
  report_values(report, "environment", task + ", mj_step alone, control steps", "control steps/s",
                plain, one_thread);
  for (const int threads : {1, 2}) {
    BenchPlayers players(task, options.models, threads);
    const auto rates =
        measure_rates(options, [&] { return players.at_once(&BenchPlayer::play, kChunk); });
    report_values(report, "environment", task + ", states, control steps (resets included)",
                  "control steps/s", rates, {{"task", task}, {"threads", std::to_string(threads)}});
  }
  BenchPlayer resetting(task, options.models, 1);
  const auto resets = measure_rates(options, [&] {
    for (int i = 0; i < 20; ++i)
      resetting.reset();
    return 20.0;
  });
  report_values(report, "environment", task + ", resets", "resets/s", resets, one_thread);
}

} // namespace

void bench_environment(const BenchOptions& options, const Report& report) {
  for (const char* task :
       {"cheetah_run", "walker_walk", "cartpole_swingup", "HalfCheetah-v5", "Ant-v5"})
    bench_task(options, report, task);
}

} // namespace troupe::experiments
