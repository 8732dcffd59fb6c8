#pragma once

#include <cstdint>

#include "env/random.hpp"

namespace troupe::env::minatar {

/// Where a game's random numbers come from: an environment's own stream, or what MinAtar drew when
/// a recording was made, so that a test can replay it.
class Chance {
public:
  virtual ~Chance() = default;

  virtual double uniform() = 0;                       // [0, 1)
  virtual std::int32_t one_below(std::int32_t n) = 0; // 0 to n - 1, each as probable

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
