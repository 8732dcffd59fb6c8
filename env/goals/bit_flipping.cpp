#include "env/goals/bit_flipping.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::env::goals {
namespace {

constexpr int kMostBits = 64;

GoalOutcome outcome(bool reached) {
  return {.reward = reached ? 0.0 : -1.0, .terminated = reached};
}

} // namespace

BitFlipping::BitFlipping(const std::string& name, const gym::GymOptionValues& options)
    : bits_(options.count("bits")) {
  spec_.name = name;
  for (const char* array : {"bits", "goal"})
    spec_.observations.push_back({array, ElementType::float64, {bits_}});
  spec_.action = one_of(bits_);
  spec_.episode_steps = bits_;
  spec_.control_timestep_seconds = 1;
  spec_.goal = {.achieved = 0,
                .desired = bits_,
                .size = bits_,
                .outcome = [](std::span<const float> achieved, std::span<const float> desired) {
                  return outcome(std::ranges::equal(achieved, desired));
                }};
}

void BitFlipping::begin(State& state, Random& random) const {
  for (std::uint64_t* number : {&state.bits, &state.goal})
    for (int i = 0; i < bits_; ++i)
      *number |= std::uint64_t{random.uniform() < 0.5} << i;
  if (state.goal == state.bits)
    state.goal ^= 1;
}

GameStep BitFlipping::step(State& state, std::span<const double> action, Random&) const {
  state.bits ^= std::uint64_t{1} << static_cast<int>(action[0]);
  const GoalOutcome made = outcome(state.bits == state.goal);
  return {.reward = made.reward, .terminated = made.terminated};
}

void BitFlipping::observe(const State& state, std::span<std::byte> observation) const {
  for (const std::uint64_t number : {state.bits, state.goal})
    for (int i = 0; i < bits_; ++i) {
      const auto bit = static_cast<double>(number >> i & 1);
      std::memcpy(observation.data(), &bit, sizeof bit);
      observation = observation.subspan(sizeof bit);
    }
}

bool BitFlipping::is_valid(const State& state) const {
  return bits_ == kMostBits || (state.bits | state.goal) >> bits_ == 0;
}

const std::vector<gym::GymOptionRule>& bit_flipping_options() {
  static const std::vector<gym::GymOptionRule> rules{
      {"bits",
       gym::GymOptionKind::count,
       "15",
       "number of bits, choices and steps per episode",
       {},
       2,
       kMostBits}};
  return rules;
}

} // namespace troupe::env::goals
