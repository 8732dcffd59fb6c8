#include <doctest/doctest.h>

#include <cstddef>

#include "env/classic/classic.hpp"
#include "env/goals/goals.hpp"
#include "env/gym/gym.hpp"
#include "env/make/make.hpp"
#include "env/minatar/minatar.hpp"
#include "tests/allocation_counter.hpp"

using namespace troupe;
using namespace troupe::env;

TEST_CASE("Steps of every suite task with wrappers for states allocate no memory") {
  if (!counts_allocations())
    return;
  for (const std::string& task : task_names()) {
    CAPTURE(task);
    const auto environment = make_environment({.task = task, .frame_stack = 3, .action_repeat = 2});
    std::vector<std::byte> observation(environment->spec().observation_bytes());
    const std::vector<double> action(environment->spec().action.size(), .7);
    environment->reset(1, observation);
    environment->step(action, observation);
    CHECK(allocations_of([&] {
            for (int i = 0; i < 300; ++i)
              environment->step(action, observation);
          })
          == 0);
  }
}

TEST_CASE("Steps with every wrapper that does not draw allocate no memory") {
  if (!counts_allocations())
    return;
  const auto environment = make_environment({.task = "walker_walk",
                                             .frame_stack = 3,
                                             .action_repeat = 2,
                                             .time_limit = 900,
                                             .action_clip = .8,
                                             .action_rescale = true,
                                             .action_noise = .1,
                                             .reward_scale = 2,
                                             .reward_clip = 1,
                                             .observations = {"state", "height"},
                                             .normalization = {.mode = "running"},
                                             .randomization = {.masses = .1, .friction = .1}});
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  const std::vector<double> action(environment->spec().action.size(), .7);
  environment->reset(1, observation);
  CHECK(allocations_of([&] {
          for (int i = 0; i < 300; ++i)
            environment->step(action, observation);
        })
        == 0);
}

TEST_CASE("Steps of Gym, classic, MinAtar and goal tasks allocate no memory") {
  if (!counts_allocations())
    return;
  std::vector<std::unique_ptr<Environment>> environments;
  for (const std::string& task : gym_names())
    environments.push_back(make_gym(task));
  for (const std::string& task : classic_names())
    environments.push_back(make_classic(task));
  for (const std::string& task : goal_task_names())
    environments.push_back(make_goal_task(task));
  for (const std::string& task : minatar_names())
    environments.push_back(make_minatar(task));
  for (const auto& environment : environments) {
    CAPTURE(environment->spec().name);
    std::vector<std::byte> observation(environment->spec().observation_bytes());
    const double number = environment->spec().action.is_continuous() ? .3 : 1;
    const std::vector<double> action(environment->spec().action.size(), number);
    environment->reset(1, observation);
    environment->step(action, observation);
    int allocations = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      TimeStep step;
      allocations += allocations_of([&] { step = environment->step(action, observation); });
      if (step.step_type == StepType::last)
        environment->reset(i, observation);
    }
    CHECK(allocations == 0);
  }
}
