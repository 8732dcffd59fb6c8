#pragma once

#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/minatar/minatar.hpp"
#include "env/random.hpp"

namespace troupe::env {

/// A MinAtar game and a buffer for its observations.
struct PlayedGame {
  std::unique_ptr<Environment> environment;
  std::vector<std::byte> observation;

  explicit PlayedGame(const std::string& name,
                      const std::map<std::string, std::string>& options = {})
      : environment(make_minatar(name, options)),
        observation(environment->spec().observation_bytes()) {}

  TimeStep reset(std::uint64_t seed) { return environment->reset(seed, observation); }
  TimeStep step(double action) { return environment->step(std::span(&action, 1), observation); }
  double some_action(Random& random) const {
    return std::floor(
        random.uniform(0, static_cast<double>(environment->spec().action.choices_of(0))));
  }
  std::vector<std::byte> saved() const {
    std::vector<std::byte> state;
    environment->save_state(state);
    return state;
  }
};

} // namespace troupe::env
