#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "env/game_environment.hpp"
#include "env/gym/options.hpp"

namespace troupe::env::goals {

/// n bits, of which each action flips one, are to be made equal to n others: -1 a step until they
/// are, which ends the episode; it lasts n steps at most. From Andrychowicz et al., "Hindsight
/// Experience Replay" (2017), where an episode goes on after success.
class BitFlipping {
public:
  struct State {
    std::uint64_t bits = 0;
    std::uint64_t goal = 0;
  };

  /// Throws std::invalid_argument on more than 64 bits.
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
