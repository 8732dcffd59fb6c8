#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "env/game_environment.hpp"
#include "env/gym/options.hpp"
#include "env/minatar/board.hpp"
#include "env/minatar/chance.hpp"
#include "env/minatar/minatar_task.hpp"

namespace troupe::env::minatar {

// clang-format off
/// Adapts the rules of one of MinAtar's games to GameEnvironment. It adds what all games share: the
/// set of actions, sticky actions and the layout of the observation. Rules has
///   explicit Rules(bool difficulty_ramping);
///   static constexpr std::int64_t kChannels;
///   struct State;                                    // trivially copyable; State{} before begin()
///   void begin(State&, Chance&) const;               // a new episode
///   GameStep step(State&, Action, Chance&) const;
///   void observe(const State&, Picture&) const;
///   bool is_valid(const State&) const;               // whether a loaded state is valid
// clang-format on
template <class Rules>
class MinAtarGame {
public:
  struct State {
    typename Rules::State board{};
    Action last_action = Action::none; // that the game received
  };
  // Equal states have equal bytes when they are saved.
  static_assert(std::has_unique_object_representations_v<State>);

  MinAtarGame(const std::string& name, std::span<const Action> actions,
              const gym::GymOptionValues& options)
      : rules_(options.flag("difficulty_ramping")),
        actions_(actions.begin(), actions.end()),
        sticky_probability_(options.number("sticky_action_prob")),
        spec_(minatar_spec(name, options, Rules::kChannels, actions_.size())) {}

  const EnvironmentSpec& spec() const { return spec_; }

  void begin(State& state, Random& random) const {
    RandomChance chance(random);
    begin(state, chance);
  }
  void begin(State& state, Chance& chance) const { rules_.begin(state.board, chance); }

  GameStep step(State& state, std::span<const double> action, Random& random) const {
    RandomChance chance(random);
    return step(state, action, chance);
  }
  /// `action` [1]: one of the task's actions.
  GameStep step(State& state, std::span<const double> action, Chance& chance) const {
    if (!chance.happens(sticky_probability_))
      state.last_action = actions_[static_cast<std::size_t>(action[0])];
    return rules_.step(state.board, state.last_action, chance);
  }

  void observe(const State& state, std::span<std::byte> observation) const {
    std::ranges::fill(observation, std::byte{0});
    Picture picture(observation);
    rules_.observe(state.board, picture);
  }

  bool is_valid(const State& state) const {
    return state.last_action >= Action::none && state.last_action <= Action::fire
           && rules_.is_valid(state.board);
  }

private:
  Rules rules_;
  std::vector<Action> actions_;
  double sticky_probability_; // probability of repeating the last action
  EnvironmentSpec spec_;
};

template <class Rules>
std::unique_ptr<Environment> make_game(const std::string& name, std::span<const Action> actions,
                                       const gym::GymOptionValues& options) {
  return std::make_unique<GameEnvironment<MinAtarGame<Rules>>>(
      MinAtarGame<Rules>(name, actions, options));
}

} // namespace troupe::env::minatar
