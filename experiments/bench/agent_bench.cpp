#include <atomic>
#include <stdexcept>
#include <vector>

#include "actors/run/run.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/bench_folder.hpp"
#include "learner/agents/d4pg/d4pg.hpp"

namespace troupe::experiments {

namespace {

/// cheetah_run from states, end to end, with one update of 256 transitions per agent step and
/// networks of 256-256, as in the DDPG script that it is compared with. `threads` is the learner's
/// number of threads.
actors::RunConfig cheetah(const BenchOptions& options, int threads) {
  actors::RunConfig config;
  config.environment.task = "cheetah_run";
  config.environment.models = options.models;
  config.agent = learner::make_d4pg_agent(
      {.policy_layers = {256, 256}, .critic_layers = {256, 256}, .layer_norm = false});
  config.replay.minimum_items = 500;
  config.replay.samples_per_insert = 256;
  config.replay.n_step = 1;
  config.actors.environment = 1;
  config.actors.random_steps = 500;
  config.learner.threads = threads;
  config.learner.publish_period = 1;
  config.evaluation.period = 0;
  config.evaluation.final_episodes = 1;
  config.checkpoint.minutes = 0;
  config.checkpoint.replay = false;
  config.stop.environment_steps = std::int64_t{1} << 40;
  return config;
}

} // namespace

void bench_agent(const BenchOptions& options, const Report& report) {
  for (const int threads : {1, 2}) {
    const BenchFolder folder;
    std::vector<double> steps, updates;
    std::atomic<bool> stop = false;
    double from_seconds = -1;
    actors::Progress from;
    actors::RunCallbacks callbacks;
    callbacks.progress = [&](const actors::Progress& now) {
      if (now.updates < 100)
        return; // warming up
      if (from_seconds >= 0 && now.training_seconds - from_seconds < options.seconds)
        return;
      if (from_seconds >= 0) {
        const double seconds = now.training_seconds - from_seconds;
        steps.push_back(static_cast<double>(now.agent_steps - from.agent_steps) / seconds);
        updates.push_back(static_cast<double>(now.updates - from.updates) / seconds);
      }
      from = now;
      from_seconds = now.training_seconds;
      stop = static_cast<int>(steps.size()) >= options.repetitions;
    };
    const auto result =
        actors::run(cheetah(options, threads), folder.path, {}, {}, callbacks, stop);
    if (!result.error.empty())
      throw std::runtime_error("bench agent: " + result.error);
    const FigureConfig config{{"task", "cheetah_run"},
                              {"batch", "256"},
                              {"networks", "256-256"},
                              {"updates_per_agent_step", "1"},
                              {"learner_threads", std::to_string(threads)}};
    report_values(report, "agent", "D4PG end to end", "agent steps/s", steps, config);
    report_values(report, "agent", "D4PG updates beside it", "updates/s", updates, config);
  }
}

} // namespace troupe::experiments
