#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "env/gym/gym.hpp"
#include "env/make/make.hpp"
#include "env/physics.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/random_actions.hpp"

namespace troupe::experiments {

namespace {

constexpr int kChunk = 2000; // control steps of one thread between two readings of the clock

/// A task of the control suite with observations as states, or one of Gym's tasks unchanged.
std::unique_ptr<env::Environment> make_player(const std::string& task, const std::string& models) {
  const std::vector<std::string> gym = env::gym_names();
  if (std::find(gym.begin(), gym.end(), task) != gym.end())
    return env::make_gym(task);
  return env::make_environment({.task = task, .models = models});
}

/// Plays one environment with prepared random actions. When an episode ends, a new one begins.
class Player {
public:
  Player(const std::string& task, const std::string& models, std::uint64_t seed)
      : environment_(make_player(task, models)),
        observation_(environment_->spec().observation_bytes()),
        actions_(random_actions(environment_->spec().action, 512, seed)) {
    environment_->reset(seed_, observation_);
  }

  void play(int steps) {
    for (int i = 0; i < steps; ++i)
      if (environment_->step(action(i), observation_).step_type == env::StepType::last)
        reset();
  }

  /// Like play(), but calls only mj_step, with as many physics steps per control step.
  void play_plain(int steps, int physics_steps) {
    env::Physics& physics = *environment_->physics();
    for (int i = 0; i < steps; ++i) {
      const auto control = action(i);
      std::copy(control.begin(), control.end(), physics.data().ctrl);
      physics.step_plain(physics_steps);
      if (i % 1000 == 999)
        reset();
    }
  }

  void reset() { environment_->reset(++seed_, observation_); }

  int physics_steps() const {
    const double ratio = environment_->spec().control_timestep_seconds
                         / environment_->physics()->model().opt.timestep;
    return static_cast<int>(ratio + .5);
  }

private:
  std::span<const double> action(int i) const {
    const std::size_t size = environment_->spec().action.size();
    return std::span(actions_).subspan(static_cast<std::size_t>(i % 512) * size, size);
  }

  std::unique_ptr<env::Environment> environment_;
  std::vector<std::byte> observation_;
  std::vector<double> actions_;
  std::uint64_t seed_ = 1;
};

void bench_task(const BenchOptions& options, const Report& report, const std::string& task) {
  Player floor(task, options.models, 1);
  const auto plain = measure_rates(options, [&] {
    floor.play_plain(kChunk, floor.physics_steps());
    return static_cast<double>(kChunk);
  });
  report_values(report, "environment", task + ", mj_step alone, control steps", "control steps/s",
                plain, {{"task", task}, {"threads", "1"}});
  for (const int threads : {1, 2}) {
    std::vector<std::unique_ptr<Player>> players;
    for (int t = 0; t < threads; ++t)
      players.push_back(
          std::make_unique<Player>(task, options.models, static_cast<std::uint64_t>(t + 1)));
    const auto rates = measure_rates(options, [&] {
      std::vector<std::jthread> others;
      for (std::size_t t = 1; t < players.size(); ++t)
        others.emplace_back([&player = *players[t]] { player.play(kChunk); });
      players[0]->play(kChunk);
      others.clear(); // joins
      return static_cast<double>(kChunk * threads);
    });
    report_values(report, "environment", task + ", states, control steps (resets included)",
                  "control steps/s", rates, {{"task", task}, {"threads", std::to_string(threads)}});
  }
  Player resetting(task, options.models, 1);
  const auto resets = measure_rates(options, [&] {
    for (int i = 0; i < 20; ++i)
      resetting.reset();
    return 20.0;
  });
  report_values(report, "environment", task + ", resets", "resets/s", resets,
                {{"task", task}, {"threads", "1"}});
}

} // namespace

void bench_environment(const BenchOptions& options, const Report& report) {
  for (const char* task :
       {"cheetah_run", "walker_walk", "cartpole_swingup", "HalfCheetah-v5", "Ant-v5"})
    bench_task(options, report, task);
}

} // namespace troupe::experiments
