#pragma once

#include "env/gym/gym_task.hpp"

namespace troupe::env::gym {

/// The common part of Humanoid and HumanoidStandup: the observations and the noise of the initial
/// state.
class HumanoidBody {
public:
  HumanoidBody(const GymOptionValues& options, const Physics& physics);

  std::vector<ArraySpec> observations(const Physics& physics) const;
  void observe(const Physics& physics, std::span<double> out) const;
  void initialize_episode(Physics& physics, Random& random) const;

private:
  double noise_;
  std::size_t skipped_; // positions that are not observed
  bool shows_inertia_;
  bool shows_velocity_;
  bool shows_actuators_;
  bool shows_forces_;
  std::size_t bodies_; // without the world body
};

/// Returns the sum of the squares of all contact forces times a weight, clipped to a range.
double humanoid_contact_cost(const Physics& physics, double weight, const GymRange& range);

/// Returns `own` and the options of the body.
std::vector<GymOptionRule> with_humanoid_options(std::vector<GymOptionRule> own);

} // namespace troupe::env::gym
