#include <doctest/doctest.h>

#include <fstream>

#include "env/gym/gym.hpp"
#include "tests/env/gym/played.hpp"
#include "tests/temporary_folder.hpp"

using namespace troupe::env;

TEST_CASE("Unknown Gym tasks and options are refused with the nearest names, and invalid values "
          "with the rule") {
  CHECK_THROWS_WITH_AS(make_gym("Ant-v4"),
                       doctest::Contains("no Gym task 'Ant-v4'; nearest: 'Ant-v5'"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(gym_options("Walker-v5"), doctest::Contains("'Walker2d-v5'"),
                       std::invalid_argument);
  const auto refused = [](const char* key, const char* value, const char* why) {
    CAPTURE(key);
    CHECK_THROWS_WITH_AS(make_gym("Ant-v5", {.values = {{key, value}}}), doctest::Contains(why),
                         std::invalid_argument);
  };
  refused("control_cost_weight", "1", "nearest: 'ctrl_cost_weight'");
  refused("width", "480", "pixel options");
  refused("ctrl_cost_weight", "abc",
          "option ctrl_cost_weight is 'abc'; it must be a finite number");
  refused("ctrl_cost_weight", "inf", "(default: 0.5)");
  refused("ctrl_cost_weight", "nan", "finite number");
  refused("ctrl_cost_weight", "", "finite number");
  refused("reset_noise_scale", "-0.1", "0 or greater");
  refused("frame_skip", "0", "from 1 to 1000");
  refused("frame_skip", "2.5", "from 1 to 1000");
  refused("max_episode_steps", "0", "or -1 for no limit");
  refused("terminate_when_unhealthy", "maybe", "true or false");
  refused("healthy_z_range", "1", "two numbers");
  refused("healthy_z_range", "2,1", "low <= high");
  refused("healthy_z_range", "0,nan", "low <= high");
  refused("main_body", "torsoo", "nearest: 'torso'");
  refused("main_body", "14", "bodies 0 to 13");
  refused("xml_file", " ", "1 to 4096 characters");
  refused("xml_file", "~/ant.xml", "write out the home folder");
  refused("ctrl_cost_weight", std::string(100000, '1').c_str(), "finite number");
}

TEST_CASE("Every option of a Gym task is documented, and leaving it out gives its default") {
  for (const std::string& name : gym_names()) {
    CAPTURE(name);
    const std::vector<GymOption> options = gym_options(name);
    GymOptions all;
    for (const GymOption& option : options) {
      CHECK(!option.rule.empty());
      CHECK(!option.help.empty());
      CHECK(all.values.emplace(option.name, option.default_value).second);
    }
    Played written(name, all);
    Played left_out(name);
    written.reset(2);
    left_out.reset(2);
    Random a(1);
    Random b(1);
    CHECK(written.step_randomly(a).reward == left_out.step_randomly(b).reward);
    CHECK(written.observation == left_out.observation);
  }
}

TEST_CASE("Ranges are also parsed in Python's notation") {
  const auto reward = [](const char* range) {
    Played played("Humanoid-v5", {.values = {{"contact_cost_range", range}}});
    played.reset(1);
    Random random(1);
    played.step_randomly(random);
    return part(*played.environment, "reward_contact");
  };
  CHECK(reward("0.25, inf") == -.25);
  CHECK(reward("(0.25, 0.5)") == -.25);
  CHECK(reward("[-inf,-1e0]") == 1);
}

TEST_CASE("A user's own model is played, and a model that lacks a required part is refused") {
  const troupe::TemporaryFolder folder;
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return GymOptions{.values = {{"xml_file", (folder / name).string()}}};
  };
  const std::string slider = "<mujoco><worldbody><body><joint name='x' type='slide' axis='1 0 0'/>"
                             "<geom size='.1'/></body></worldbody><actuator><motor joint='x'/>"
                             "</actuator></mujoco>";
  Played own("HalfCheetah-v5", write("slider.xml", slider));
  own.reset(1);
  CHECK(own.observation.size() == 1); // x is hidden
  CHECK(own.environment->spec().action.maximum[0] > 1e300);
  CHECK(own.step(std::vector<double>{2}).reward != 0);
  CHECK_THROWS_WITH_AS(make_gym("Hopper-v5", write("slider.xml", slider)),
                       doctest::Contains("has 1 positions (nq); the task reads 3"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(make_gym("Humanoid-v5", write("slider.xml", slider)),
                       doctest::Contains("choose another xml_file"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(make_gym("Reacher-v5", write("slider.xml", slider)),
                       doctest::Contains("'fingertip'"), std::invalid_argument);
  CHECK_THROWS_AS(make_gym("InvertedDoublePendulum-v5", write("slider.xml", slider)),
                  std::invalid_argument);
  CHECK_THROWS_WITH_AS(make_gym("Ant-v5", write("broken.xml", "<mujoco><worldbody>")),
                       doctest::Contains("broken.xml"), std::runtime_error);
  CHECK_THROWS_WITH_AS(make_gym("Ant-v5", {.values = {{"xml_file", "/nowhere/ant.xml"}}}),
                       doctest::Contains("/nowhere/ant.xml does not exist"), std::runtime_error);
  CHECK_THROWS_WITH_AS(make_gym("Ant-v5", {.models = "/nowhere"}),
                       doctest::Contains("/nowhere/ant.xml does not exist"), std::runtime_error);
}
