#include <doctest/doctest.h>

#include "env/classic/classic.hpp"
#include "env/make/make.hpp"

using namespace troupe::env;

TEST_CASE("Unknown classic tasks and options are refused with the nearest names, and invalid "
          "values with the rule") {
  CHECK_THROWS_WITH_AS(make_classic("CartPole-v0"),
                       doctest::Contains("no classic task 'CartPole-v0'; nearest: 'CartPole-v1'"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(classic_options("Taxi-v3"), doctest::Contains("'Taxi-v4'"),
                       std::invalid_argument);
  const auto refused = [](const std::string& task, const std::string& key, const std::string& value,
                          const char* why) {
    CAPTURE(task);
    CAPTURE(key);
    CAPTURE(value);
    CHECK_THROWS_WITH_AS(make_classic(task, {{key, value}}), doctest::Contains(why),
                         std::invalid_argument);
  };
  refused("CartPole-v1", "goal_velocity", "1", "there is no option 'goal_velocity'");
  refused("CartPole-v1", "sutton_reward", "1", "nearest: 'sutton_barto_reward'");
  refused("CartPole-v1", "sutton_barto_reward", "2",
          "CartPole-v1: option sutton_barto_reward is '2'; it must be true or false");
  refused("CartPole-v1", "max_episode_steps", "0", "or -1 for no limit (default: 500)");
  refused("MountainCar-v0", "goal_velocity", "inf", "a finite number");
  refused("Pendulum-v1", "g", "", "a finite number (default: 10)");
  refused("Acrobot-v1", "book_or_nips", "paper",
          "option book_or_nips is 'paper'; it must be 'book' or 'nips'");
  refused("FrozenLake-v1", "map_name", "5x5", "must be '4x4' or '8x8' (default: 4x4)");
  refused("FrozenLake8x8-v1", "map_name", "", "default: 8x8");
  refused("FrozenLake-v1", "success_rate", "1.1", "a number from 0 to 1");
  refused("FrozenLake-v1", "success_rate", "-0.1", "a number from 0 to 1");
  refused("FrozenLake-v1", "reward_schedule", "1,0", "three finite numbers");
  refused("FrozenLake-v1", "reward_schedule", "1,0,0,0", "three finite numbers");
  refused("FrozenLake-v1", "reward_schedule", "1,0,inf", "three finite numbers");
  refused("FrozenLake-v1", "reward_schedule", "1,,0", "three finite numbers");
  refused("Taxi-v4", "rainy_probability", "nan", "a number from 0 to 1");
  CHECK_THROWS_WITH_AS(make_bare({.task = "CartPole-v1", .options = {"length=2"}}),
                       doctest::Contains("no option 'length'"), std::invalid_argument);
}

TEST_CASE("Every option of a classic task is documented, and leaving it out gives its default") {
  const auto first_steps = [](const std::string& name,
                              const std::map<std::string, std::string>& options) {
    const auto environment = make_classic(name, options);
    std::vector<std::byte> seen(environment->spec().observation_bytes());
    std::vector<std::byte> all;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      environment->reset(seed, seen);
      for (int i = 0; i < 3; ++i) {
        all.insert(all.end(), seen.begin(), seen.end());
        if (environment->step(std::vector<double>{1}, seen).step_type == StepType::last)
          break;
      }
    }
    return std::pair(all, environment->spec().episode_steps);
  };
  for (const std::string& name : classic_names()) {
    CAPTURE(name);
    std::map<std::string, std::string> all;
    for (const GymOption& option : classic_options(name)) {
      CHECK(!option.rule.empty());
      CHECK(!option.help.empty());
      CHECK(all.emplace(option.name, option.default_value).second);
    }
    CHECK(all.contains("max_episode_steps"));
    CHECK(first_steps(name, all) == first_steps(name, {}));
  }
}

TEST_CASE("Three numbers are also parsed in Python's notation") {
  CHECK_NOTHROW(make_classic("FrozenLake-v1", {{"reward_schedule", "(1, 0, -0.5)"}}));
  CHECK_NOTHROW(make_classic("FrozenLake-v1", {{"reward_schedule", " [1e1,0 , 3]"}}));
}
