#pragma once

#include <cstdint>

#include "env/random.hpp"

namespace troupe::env::minatar {

/// The source of a game's random numbers: the environment's own stream, or the numbers that MinAtar
/// drew in a recording, which a test replays.
class Chance {
public:
  virtual ~Chance() = default;

  virtual double uniform() = 0;                       // [0, 1)
  virtual std::int32_t one_below(std::int32_t n) = 0; // 0 to n - 1, uniformly

  bool happens(double probability) { return uniform() < probability; }
};

class RandomChance final : public Chance {
public:
  explicit RandomChance(Random& random) : random_(random) {}

  double uniform() override { return random_.uniform(); }
  std::int32_t one_below(std::int32_t n) override {
    return static_cast<std::int32_t>(random_.uniform() * n);
  }

private:
  Random& random_;
};

} // namespace troupe::env::minatar
