#include "env/suite/humanoid_task.hpp"

namespace troupe::env {

namespace {

TaskInfo humanoid_cmu(const char* name, double speed) {
  return {name, "humanoid_CMU.xml", "", nullptr, 20, .02, [speed](Physics& physics) {
            return make_humanoid(physics, {.trunk = "thorax",
                                           .trunk_velocity = "thorax_subtreelinvel",
                                           .up_entry = 7, // z component of its y axis
                                           .limbs = {"lhand", "lfoot", "rhand", "rfoot"},
                                           .speed = speed});
          }};
}

const TaskInfo kHumanoidCmuTasks[] = {
    humanoid_cmu("humanoid_CMU_stand", 0),
    humanoid_cmu("humanoid_CMU_walk", 1),
    humanoid_cmu("humanoid_CMU_run", 10),
};

} // namespace

std::span<const TaskInfo> humanoid_cmu_tasks() {
  return kHumanoidCmuTasks;
}

} // namespace troupe::env
