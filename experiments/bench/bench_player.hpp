#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "env/gym/gym.hpp"
#include "env/make/make.hpp"
#include "env/physics.hpp"
#include "env/plugin/rollout.hpp"

namespace troupe::experiments {

/// The actions of the first `count` steps of a random rollout, concatenated.
inline std::vector<double> random_actions(const env::EnvironmentSpec& spec, std::size_t count,
                                          std::uint64_t seed) {
  std::vector<double> actions;
  for (std::size_t i = 0; i < count; ++i) {
    const auto action =
        env::action_for(spec, seed, static_cast<std::int64_t>(i), env::Acting::random);
    actions.insert(actions.end(), action.begin(), action.end());
  }
  return actions;
}

/// Plays one environment with prepared random actions: a task of the control suite with
/// observations as states, or one of Gym's tasks unchanged. When an episode ends, a new one begins.
class BenchPlayer {
public:
  BenchPlayer(const std::string& task, const std::string& models, std::uint64_t seed)
      : environment_(make(task, models)),
        observation_(environment_->spec().observation_bytes()),
        actions_(random_actions(environment_->spec(), kActions, seed)) {
    environment_->reset(seed_, observation_);
  }

  void play(int steps) {
    for (int i = 0; i < steps; ++i)
      if (environment_->step(action(i), observation_).step_type == env::StepType::last)
        reset();
  }

  /// Like play(), but calls only mj_step, with as many physics steps per control step.
  void play_plain(int steps) {
    env::Physics& physics = *environment_->physics();
    const int per_step = static_cast<int>(
        environment_->spec().control_timestep_seconds / physics.model().opt.timestep + .5);
    for (int i = 0; i < steps; ++i) {
      const auto control = action(i);
      std::copy(control.begin(), control.end(), physics.data().ctrl);
      physics.step_plain(per_step);
      if (i % 1000 == 999)
        reset();
    }
  }

  void reset() { environment_->reset(++seed_, observation_); }

private:
  static constexpr std::size_t kActions = 512;

  static std::unique_ptr<env::Environment> make(const std::string& task,
                                                const std::string& models) {
    const std::vector<std::string> gym = env::gym_names();
    if (std::find(gym.begin(), gym.end(), task) != gym.end())
      return env::make_gym(task);
    return env::make_environment({.task = task, .models = models});
  }

  std::span<const double> action(int i) const {
    const std::size_t size = environment_->spec().action.size();
    return std::span(actions_).subspan(static_cast<std::size_t>(i) % kActions * size, size);
  }

  std::unique_ptr<env::Environment> environment_;
  std::vector<std::byte> observation_;
  std::vector<double> actions_;
  std::uint64_t seed_ = 1;
};

/// Players of one task on several threads, one of which is the caller's.
class BenchPlayers {
public:
  BenchPlayers(const std::string& task, const std::string& models, int threads) {
    for (int t = 0; t < threads; ++t)
      players_.emplace_back(task, models, static_cast<std::uint64_t>(t) + 1);
  }

  /// Each makes so many steps. Returns the number of steps of all together.
  double at_once(void (BenchPlayer::*play)(int), int steps) {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < players_.size(); ++i)
      others.emplace_back([=, this] { (players_[i].*play)(steps); });
    (players_[0].*play)(steps);
    others.clear(); // joins
    return static_cast<double>(players_.size()) * steps;
  }

private:
  std::vector<BenchPlayer> players_;
};

} // namespace troupe::experiments
