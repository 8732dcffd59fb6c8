#pragma once

#include <array>

#include "env/suite/task.hpp"

namespace troupe::env {

/// What distinguishes the suite's two humanoids, and their tasks from each other.
struct HumanoidOptions {
  const char* trunk;                // the body in whose frame it sees
  const char* trunk_velocity;       // sensor: metres/second of its subtree, in the world
  int up_entry;                     // of the trunk's xmat: how upright it is
  std::array<const char*, 4> limbs; // bodies: a hand and a foot, then the other side's
  double speed;                     // metres/second to move at; 0: standing is all
  bool pure_state = false;          // positions and velocities instead of features
};

/// Stand, walk or run.
std::unique_ptr<Task> make_humanoid(Physics& physics, const HumanoidOptions& options);

} // namespace troupe::env
