#pragma once

#include <random>

#include "env/make/make.hpp"
#include "env/physics.hpp"
#include "tests/env/suite/distributions.hpp"

/// The first states of many episodes, as columns of numbers.
namespace troupe::env::testing {

inline constexpr double kPi = std::numbers::pi;

using Read = std::function<std::vector<double>(const Physics&)>;

/// What `read` returns after each of many resets of one environment.
inline Draws draw(const std::string& task, std::size_t resets, const Read& read) {
  const auto environment = make_task(task);
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  environment->reset(0, observation);
  Draws draws(read(*environment->physics()).size(), resets);
  for (std::size_t i = 0; i < resets; ++i) {
    environment->reset(1000 + i, observation);
    const std::vector<double> values = read(*environment->physics());
    for (std::size_t k = 0; k < values.size(); ++k)
      draws.set(i, k, values[k]);
  }
  return draws;
}

inline std::vector<double> state(const Physics& physics) { // positions, then velocities
  const mjData& data = physics.data();
  std::vector<double> all(data.qpos, data.qpos + physics.model().nq);
  all.insert(all.end(), data.qvel, data.qvel + physics.model().nv);
  return all;
}

/// Checks the columns [from, to), which dm_control draws independently.
inline void check_all_uncorrelated(const std::string& task, const Draws& draws, std::size_t from,
                                   std::size_t to) {
  for (std::size_t a = from; a < to; ++a)
    for (std::size_t b = from; b < a; ++b)
      check_uncorrelated(task + ": " + std::to_string(a) + " and " + std::to_string(b), draws[a],
                         draws[b]);
}

/// Checks that every hinge and slide joint is drawn as by dm_control's randomizer, and that all
/// velocities are 0.
inline void check_joints(const std::string& task, std::size_t resets) {
  const auto environment = make_task(task);
  const mjModel& model = environment->physics()->model();
  const Draws draws = draw(task, resets, state);
  for (std::size_t joint = 0; joint < static_cast<std::size_t>(model.njnt); ++joint) {
    const std::string what = task + ", joint " + std::to_string(joint);
    const Sample& positions = draws[static_cast<std::size_t>(model.jnt_qposadr[joint])];
    if (model.jnt_limited[joint])
      check_uniform(what, positions, model.jnt_range[2 * joint], model.jnt_range[2 * joint + 1]);
    else if (model.jnt_type[joint] == mjJNT_HINGE)
      check_uniform(what, positions, -kPi, kPi);
    else
      check_constant(what, positions, model.qpos0[model.jnt_qposadr[joint]]);
  }
  for (auto i = static_cast<std::size_t>(model.nq); i < draws.columns(); ++i)
    check_constant(task + " velocity", draws[i], 0);
}

/// A random number generator independent of ours.
class Other {
public:
  double uniform(double low = 0, double high = 1) {
    return std::uniform_real_distribution<double>(low, high)(twister_);
  }
  double normal() { return std::normal_distribution<double>()(twister_); }

private:
  std::mt19937_64 twister_{12345};
};

} // namespace troupe::env::testing
