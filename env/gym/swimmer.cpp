#include "env/gym/runner.hpp"

namespace troupe::env::gym {

GymTaskInfo swimmer_v5() {
  return {"Swimmer-v5",
          with_common_options(runner_options("0.0001", "hides x and y"), "swimmer.xml", "4"),
          &make_gym_task_of<Runner, 2, Runner::Noise::uniform>};
}

} // namespace troupe::env::gym
