#include "env/suite/humanoid_task.hpp"

namespace troupe::env {

namespace {

TaskInfo humanoid(const char* name, double speed, bool pure_state = false) {
  return {name, "humanoid.xml", "", nullptr, 25, .025, [speed, pure_state](Physics& physics) {
            return make_humanoid(physics,
                                 {.trunk = "torso",
                                  .trunk_velocity = "torso_subtreelinvel",
                                  .up_entry = 8, // z component of its z axis
                                  .limbs = {"left_hand", "left_foot", "right_hand", "right_foot"},
                                  .speed = speed,
                                  .pure_state = pure_state});
          }};
}

const TaskInfo kHumanoidTasks[] = {
    humanoid("humanoid_stand", 0),
    humanoid("humanoid_walk", 1),
    humanoid("humanoid_run", 10),
    humanoid("humanoid_run_pure_state", 10, true),
};

} // namespace

std::span<const TaskInfo> humanoid_tasks() {
  return kHumanoidTasks;
}

} // namespace troupe::env
