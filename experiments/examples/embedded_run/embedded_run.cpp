// A program that embeds a run: it trains in its own process, receives the metrics as they arrive,
// and stops the run by its own rule.
//   embedded_run [UPDATES]     stops after that many updates
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

#include <actors/run/run.hpp>
#include <experiments/config/config.hpp>
#include <experiments/config/plan.hpp>
#include <experiments/run_folder/run_folder.hpp>

namespace {

using namespace troupe;

/// The text of an experiment, as in experiments/configs/*.textproto; load_experiment() reads such a
/// file.
constexpr const char* kExperiment = R"(
  environment { task: "cartpole_balance" action_repeat: 4 }
  replay { minimum_items: 300 samples_per_insert: 8 n_step: 3 }
  actors { environment: 2 random_steps: 300 }
  evaluation { period: 0 final_episodes: 1 video: false }
  stop { environment_steps: 1000000 }
)";

int train(std::int64_t updates) {
  const auto experiment = experiments::parse_experiment(kExperiment, "embedded", {"seed=3"});
  const auto folder =
      experiments::RunFolder::create("runs", experiment.name(), std::chrono::system_clock::now(),
                                     experiments::resolved_text(experiment));
  actors::RunConfig config = experiments::plan_run(experiment);
  experiments::use_run_folder(config, folder.path(), false);
  actors::check_run(config, false);

  std::atomic<bool> stop = false; // may be set by any thread
  std::int64_t episodes = 0;
  actors::RunCallbacks callbacks;                                    // all run on one thread
  callbacks.progress = [&](const actors::Progress& now) {            // called twice a second
    std::printf("%lld environment steps, %lld updates, return %.1f", // NaN before the first episode
                static_cast<long long>(now.environment_steps), static_cast<long long>(now.updates),
                now.episode_return);
    for (const auto& [name, value] : now.learner) // the agent's metrics by name
      std::printf(", %s %.3g", name.c_str(), value);
    std::printf("\n");
    stop = now.updates >= updates;
  };
  callbacks.episode = [&](std::int64_t, double, std::int64_t) { ++episodes; };
  callbacks.log = [](const std::string& level, const std::string& text) {
    if (level != "info")
      std::fprintf(stderr, "%s: %s\n", level.c_str(), text.c_str());
  };
  const actors::RunResult result = actors::run(config, folder.path(), {}, {}, callbacks, stop);
  if (!result.error.empty())
    throw std::runtime_error(result.error);
  std::printf("%lld updates, %lld episodes; the checkpoint is %s\n",
              static_cast<long long>(result.progress.updates), static_cast<long long>(episodes),
              result.checkpoint.c_str());
  return result.interrupted && !result.checkpoint.empty() ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  try {
    return train(argc > 1 ? std::stoll(argv[1]) : 2000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
