#pragma once

#include <array>

#include "env/suite/task.hpp"

namespace troupe::env {

/// The differences between the suite's two humanoids, and between the tasks of each.
struct HumanoidOptions {
  const char* trunk;                // body whose frame the observations use
  const char* trunk_velocity;       // sensor: metres/second of its subtree, in the world frame
  int up_entry;                     // index into the trunk's xmat: how upright it is
  std::array<const char*, 4> limbs; // bodies: a hand and a foot, then those of the other side
  double speed;                     // metres/second to move at; 0: only stand
  bool pure_state = false;          // observe positions and velocities instead of features
};

/// Makes a task to stand, walk or run.
std::unique_ptr<Task> make_humanoid(Physics& physics, const HumanoidOptions& options);

} // namespace troupe::env
