#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <string>

#include "env/gym/gym.hpp"
#include "env/make/make.hpp"
#include "env/wrappers/randomize.hpp"
#include "tests/folders.hpp"

namespace {

std::string trimmed(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(' ');
  return begin == std::string::npos ? "" : line.substr(begin);
}

double random_return(std::uint64_t seed) {
  // begin example
  using namespace troupe::env;
  const auto environment = make_environment({.task = "cheetah_run", .action_repeat = 4});
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  std::vector<double> action(environment->spec().action.size(), 0.5);
  TimeStep step = environment->reset(seed, observation);
  double episode_return = 0;
  while (step.step_type != StepType::last) {
    step = environment->step(action, observation); // float32 [17], in place
    episode_return += step.reward;
  }
  // end example
  return episode_return;
}

double hop(std::uint64_t seed, std::span<std::byte> observation, std::span<const double> action) {
  using namespace troupe::env;
  // begin example
  const auto hopper = make_gym("Hopper-v5", {.values = {{"healthy_z_range", "0.8,inf"}}});
  hopper->reset(seed, observation);
  const TimeStep hopped = hopper->step(action, observation); // float64 qpos [5], qvel [6]
  const bool fell = hopped.step_type == StepType::last && hopped.discount == 0;
  double forward = 0;
  for (const RewardPart& part : gym_reward_parts(*hopper))
    if (part.name == std::string("reward_forward"))
      forward = part.value;
  // end example
  return fell ? 0 : forward;
}

std::vector<std::byte> compensated(std::uint64_t seed) {
  using namespace troupe::env;
  // begin example
  const Randomization gravity{.name = "gravity compensation",
                              .arrays = {"body_gravcomp"},
                              .float_arrays = {},
                              .draw = [](Physics& physics, Random& random) {
                                for (double& part : physics.own_array("body_gravcomp"))
                                  part = random.uniform(0, .1);
                              }};
  Randomize environment(make_task("walker_walk"), {random_masses(.2), gravity});
  // end example
  std::vector<std::byte> observation(environment.spec().observation_bytes());
  environment.reset(seed, observation);
  environment.step(std::vector<double>(6, .5), observation);
  return observation;
}

} // namespace

TEST_CASE("The README's randomisation example runs") {
  CHECK(compensated(1) == compensated(1));
  CHECK(compensated(1) != compensated(2));
}

TEST_CASE("The README's Gym example runs") {
  std::vector<std::byte> observation(11 * sizeof(double));
  const std::vector<double> action(3, 1);
  CHECK(hop(1, observation, action) != 0);
}

TEST_CASE("The README's first example runs") {
  const double first = random_return(1);
  CHECK(first > 0);
  CHECK(first < 1000);
  CHECK(first == random_return(1));
}

TEST_CASE("The README's examples equal those of this file, line by line") {
  std::set<std::string> ours;
  std::ifstream source(troupe::in_source("tests/env/make/readme_test.cpp"));
  for (std::string line; std::getline(source, line);)
    ours.insert(trimmed(line));
  int lines = 0;
  for (const char* page : {"env/README.md", "env/wrappers/README.md"}) {
    std::ifstream readme(troupe::in_source(page));
    bool inside = false;
    for (std::string line; std::getline(readme, line);) {
      if (line.starts_with("```"))
        inside = line == "```cpp";
      else if (inside) {
        CHECK_MESSAGE(ours.count(trimmed(line)) == 1, line);
        ++lines;
      }
    }
  }
  CHECK(lines >= 10);
}
