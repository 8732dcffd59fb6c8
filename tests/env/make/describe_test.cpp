#include <doctest/doctest.h>

#include <algorithm>

#include "env/classic/classic.hpp"
#include "env/goals/goals.hpp"
#include "env/gym/gym.hpp"
#include "env/make/describe.hpp"
#include "env/minatar/minatar.hpp"

using namespace troupe::env;

namespace {

/// The environment without wrappers, after a reset into an observation of the size in its spec.
std::unique_ptr<Environment> make_environment_alone(const std::string& name) {
  auto made = make_bare({.task = name});
  std::vector<std::byte> observation(made->spec().observation_bytes());
  made->reset(1, observation);
  return made;
}

} // namespace

TEST_CASE("Every environment is described, and those of each room with the spec that they have "
          "when they are played") {
  const std::vector<Description> all = describe_environments();
  std::vector<std::string> names;
  for (const Description& description : all) {
    CAPTURE(description.name);
    names.push_back(description.name);
    CHECK(description.problem.empty());
    CHECK_FALSE(description.spec.observations.empty());
    CHECK(description.spec.action.size() > 0);
    CHECK(description.spec.control_timestep_seconds > 0);
  }
  CHECK(names == environment_names());
  const auto find = [&](const std::string& name) -> const Description& {
    const auto found = std::ranges::find(all, name, &Description::name);
    REQUIRE(found != all.end());
    return *found;
  };
  for (const std::string& name :
       {std::string("humanoid_run"), std::string("lqr_lqr_2_1"), gym_names().front(),
        classic_names().front(), minatar_names().front(), goal_task_names().front()}) {
    CAPTURE(name);
    const EnvironmentSpec& described = find(name).spec;
    const auto played = make_environment_alone(name);
    CHECK(described.name == played->spec().name);
    CHECK(described.observations == played->spec().observations);
    CHECK(described.action == played->spec().action);
    CHECK(described.episode_steps == played->spec().episode_steps);
    CHECK(described.control_timestep_seconds == played->spec().control_timestep_seconds);
    CHECK(described.goal.size == played->spec().goal.size);
  }
  const Description& run = find("humanoid_run");
  CHECK(run.spec.episode_steps == 1000);
  CHECK(run.spec.control_timestep_seconds == doctest::Approx(.025));
  CHECK(run.tags == std::vector<std::string>{"benchmarking"});
}

TEST_CASE("Tags match dm_control's") {
  const auto tags = [](const char* name) { return describe_environment(name).tags; };
  using Tags = std::vector<std::string>;
  CHECK(tags("ball_in_cup_catch") == Tags{"benchmarking", "easy"});
  CHECK(tags("manipulator_bring_ball") == Tags{"benchmarking", "hard"});
  CHECK(tags("stacker_stack_4") == Tags{"hard"});
  CHECK(tags("dog_fetch") == Tags{"hard", "no_reward_visualization"});
  CHECK(tags("lqr_lqr_2_1").empty());
  int benchmarking = 0;
  for (const std::string& name : task_names())
    benchmarking += std::ranges::count(describe_environment(name).tags, "benchmarking") > 0;
  CHECK(benchmarking == 28); // as in suite.BENCHMARKING
}

TEST_CASE("An environment that cannot be made is described with the reason") {
  const Description description = describe_environment("cheetah_run", "/nowhere");
  CHECK(description.spec.observations.empty());
  CHECK(description.problem.find("/nowhere/cheetah.xml") != std::string::npos);
  CHECK_THROWS_WITH_AS(describe_environment("cheetah_rum"), doctest::Contains("cheetah_run"),
                       std::invalid_argument);
}
