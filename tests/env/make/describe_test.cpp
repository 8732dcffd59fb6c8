#include <doctest/doctest.h>

#include <algorithm>

#include "env/make/describe.hpp"

using namespace troupe::env;

TEST_CASE("Every environment is described with the spec that it has when it is made") {
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
  const auto run = std::find_if(all.begin(), all.end(), [](const Description& description) {
    return description.name == "humanoid_run";
  });
  REQUIRE(run != all.end());
  const auto made = make_task("humanoid_run");
  CHECK(run->spec.observations == made->spec().observations);
  CHECK(run->spec.action == made->spec().action);
  CHECK(run->spec.episode_steps == 1000);
  CHECK(run->spec.control_timestep_seconds == doctest::Approx(.025));
  CHECK(run->tags == std::vector<std::string>{"benchmarking"});
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
