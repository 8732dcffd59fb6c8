#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "env/game_environment.hpp"
#include "env/gym/options.hpp"

namespace troupe::env::goals {

/// Each action flips one of n bits. The goal is to make them equal to n other bits: the reward is
/// -1 per step until they are equal, which ends the episode. An episode has at most n steps. From
/// Andrychowicz et al., "Hindsight Experience Replay" (2017), where an episode continues after
/// success.
class BitFlipping {
public:
  struct State {
    std::uint64_t bits = 0;
    std::uint64_t goal = 0;
  };

  /// `options`: of bit_flipping_options().
  BitFlipping(const std::string& name, const gym::GymOptionValues& options);

  const EnvironmentSpec& spec() const { return spec_; }
  void begin(State& state, Random& random) const;
  GameStep step(State& state, std::span<const double> action, Random& random) const;
  void observe(const State& state, std::span<std::byte> observation) const;
  bool is_valid(const State& state) const;

private:
  int bits_;
  EnvironmentSpec spec_;
};

const std::vector<gym::GymOptionRule>& bit_flipping_options();

} // namespace troupe::env::goals
