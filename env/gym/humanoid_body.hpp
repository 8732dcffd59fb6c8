#pragma once

#include "env/gym/gym_task.hpp"

namespace troupe::env::gym {

/// What Humanoid and HumanoidStandup share: what is seen, and the noise of a first state.
class HumanoidBody {
public:
  HumanoidBody(const GymOptionValues& options, const Physics& physics);

  std::vector<ArraySpec> observations() const;
  void observe(const Physics& physics, std::span<double> out) const;
  void initialize_episode(Physics& physics, Random& random) const;

private:
  double noise_;
  std::size_t skipped_; // positions not shown
  bool shows_inertia_;
  bool shows_velocity_;
  bool shows_actuators_;
  bool shows_forces_;
  std::size_t positions_;
  std::size_t velocities_;
  std::size_t bodies_; // but for the world
};

/// A weight times the squared sum of all contact forces, clipped to a range.
double humanoid_contact_cost(const Physics& physics, double weight, const GymRange& range);

/// `own` and the options of the body.
std::vector<GymOptionRule> with_humanoid_options(std::vector<GymOptionRule> own);

} // namespace troupe::env::gym
