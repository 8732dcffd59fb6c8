#include "env/classic/frozen_lake.hpp"

#include <algorithm>

namespace troupe::env::classic {

namespace {

constexpr std::string_view kSmallLake = "SFFF"
                                        "FHFH"
                                        "FFFH"
                                        "HFFG";
constexpr std::string_view kLargeLake = "SFFFFFFF"
                                        "FFFFFFFF"
                                        "FFFHFFFF"
                                        "FFFFFHFF"
                                        "FFFHFFFF"
                                        "FHHFFFHF"
                                        "FHFFHFHF"
                                        "FFFHFFFG";

ClassicTask frozen_lake(const char* name, const char* map, const char* max_episode_steps) {
  using enum gym::GymOptionKind;
  return {name,
          with_time_limit(
              {{"map_name", choice, map, "the lake's map", {"4x4", "8x8"}},
               {"is_slippery", flag, "true", "whether moves may slip sideways"},
               {"success_rate", probability, "0.3333333333333333",
                "probability that a move on slippery ice goes in the intended direction"},
               {"reward_schedule", triple, "1,0,0", "rewards for reaching the goal, a hole, ice"}},
              max_episode_steps),
          &make_game<FrozenLake>};
}

} // namespace

FrozenLake::FrozenLake(const std::string& name, const gym::GymOptionValues& options)
    : map_(options.text("map_name") == "4x4" ? kSmallLake : kLargeLake),
      side_(map_ == kSmallLake ? 4 : 8),
      spec_(classic_spec(name, options, {{"state", side_ * side_}}, one_of(4), 1)),
      slippery_(options.flag("is_slippery")),
      success_rate_(options.number("success_rate")),
      rewards_(options.triple("reward_schedule")) {}

void FrozenLake::begin(State& state, Random&) const {
  state.tile = 0;
}

Transition FrozenLake::move(std::int64_t tile, std::int64_t direction, double probability) const {
  std::int64_t row = tile / side_;
  std::int64_t column = tile % side_;
  switch (direction) {
  case 0:
    column = std::max<std::int64_t>(column - 1, 0);
    break;
  case 1:
    row = std::min(row + 1, side_ - 1);
    break;
  case 2:
    column = std::min(column + 1, side_ - 1);
    break;
  default:
    row = std::max<std::int64_t>(row - 1, 0);
  }
  const std::int64_t next = row * side_ + column;
  const bool goal = map_[static_cast<std::size_t>(next)] == 'G';
  const bool hole = map_[static_cast<std::size_t>(next)] == 'H';
  double reward = rewards_[2];
  if (goal)
    reward = rewards_[0];
  if (hole)
    reward = rewards_[1];
  return {.probability = probability, .state = next, .reward = reward, .terminated = goal || hole};
}

Transitions FrozenLake::transitions(std::int64_t tile, std::int64_t action) const {
  const char ice = map_[static_cast<std::size_t>(tile)];
  if (ice == 'G' || ice == 'H')
    return {{{.probability = 1, .state = tile, .reward = 0, .terminated = true}}};
  if (!slippery_)
    return {move(tile, action, 1)};
  const double aside = (1 - success_rate_) / 2;
  return {move(tile, (action + 3) % 4, aside), move(tile, action, success_rate_),
          move(tile, (action + 1) % 4, aside)};
}

GameStep FrozenLake::step(State& state, std::span<const double> action, Random& random) const {
  const Transitions all = transitions(state.tile, static_cast<std::int64_t>(action[0]));
  const Transition& made = draw(all, random);
  state.tile = made.state;
  return {.reward = made.reward, .terminated = made.terminated};
}

void FrozenLake::observe(const State& state, std::span<std::byte> observation) const {
  write_one_hot(observation, state.tile);
}

bool FrozenLake::is_valid(const State& state) const {
  return state.tile >= 0 && state.tile < side_ * side_;
}

ClassicTask frozen_lake_v1() {
  return frozen_lake("FrozenLake-v1", "4x4", "100");
}

ClassicTask frozen_lake_8x8_v1() {
  return frozen_lake("FrozenLake8x8-v1", "8x8", "200");
}

} // namespace troupe::env::classic
