#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "env/checks.hpp"
#include "env/environment.hpp"
#include "env/random.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env {

/// The result of one step of a game.
struct GameStep {
  double reward = 0;
  bool terminated = false;
};

// clang-format off
/// An environment without a simulator. `Game` holds the rules, Game::State everything that changes:
///   struct State;                                  // trivially copyable; State{} before begin()
///   EnvironmentSpec spec() const;
///   void begin(State&, Random&) const;             // a new episode
///   GameStep step(State&, std::span<const double> action, Random&) const;
///   void observe(const State&, std::span<std::byte> observation) const;
///   bool is_valid(const State&) const;             // optional: whether a loaded state is valid
/// Actions are checked and clipped. An episode is truncated after spec().episode_steps. step() does
/// not allocate.
// clang-format on
template <class Game>
class GameEnvironment final : public Environment {
public:
  explicit GameEnvironment(Game game)
      : game_(std::move(game)), spec_(game_.spec()), action_(spec_.action.size()) {}

  const EnvironmentSpec& spec() const override { return spec_; }

  TimeStep reset(std::uint64_t seed, std::span<std::byte> observation) override {
    check_observation_buffer(spec_, observation);
    random_ = Random(seed);
    state_ = {};
    steps_ = 0;
    game_.begin(state_, random_);
    game_.observe(state_, observation);
    running_ = true;
    return {};
  }

  TimeStep step(std::span<const double> action, std::span<std::byte> observation) override {
    check_step(spec_, running_, action, observation, action_);
    const GameStep made = game_.step(state_, action_, random_);
    game_.observe(state_, observation);
    const bool truncated = ++steps_ == spec_.episode_steps;
    running_ = !made.terminated && !truncated;
    return {.step_type = running_ ? StepType::mid : StepType::last,
            .reward = made.reward,
            .discount = made.terminated ? 0.0 : 1.0};
  }

  void save_state(std::vector<std::byte>& out) const override {
    save_value(out, state_);
    save_value(out, random_);
    save_value(out, steps_);
    save_value(out, static_cast<std::uint8_t>(running_));
  }

  std::span<const std::byte> load_state(std::span<const std::byte> in) override {
    State state{};
    Random random;
    std::int64_t steps = 0;
    std::uint8_t running = 0;
    load_value(in, state, "game");
    load_value(in, random, "random numbers");
    load_value(in, steps, "step counter");
    load_value(in, running, "episode flag");
    if constexpr (requires { game_.is_valid(state); })
      if (!game_.is_valid(state))
        throw std::invalid_argument("environment " + spec_.name
                                    + ": the loaded bytes are not a state of this game: they are "
                                      "damaged, or were saved with another configuration");
    state_ = state;
    random_ = random;
    steps_ = steps;
    running_ = running != 0;
    return in;
  }

  const Game& game() const { return game_; }

  /// Begins an episode in this state, to replay a recording.
  void set_state(const typename Game::State& state) {
    state_ = state;
    steps_ = 0;
    running_ = true;
  }
  const typename Game::State& state() const { return state_; }

private:
  using State = typename Game::State;
  static_assert(std::is_trivially_copyable_v<State>);

  Game game_;
  EnvironmentSpec spec_;
  std::vector<double> action_; // clipped
  State state_{};
  Random random_;
  std::int64_t steps_ = 0;
  bool running_ = false; // between a first and a last step
};

} // namespace troupe::env
