#include <doctest/doctest.h>

#include "env/make/make.hpp"
#include "env/minatar/minatar.hpp"

using namespace troupe::env;

TEST_CASE("Unknown MinAtar tasks and options are refused with the nearest names, and invalid "
          "values with the rule") {
  CHECK_THROWS_WITH_AS(make_minatar("MinAtar/Breakout-v2"),
                       doctest::Contains("no MinAtar task 'MinAtar/Breakout-v2'; nearest: "
                                         "'MinAtar/Breakout-v0'"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(minatar_options("Seaquest-v0"), doctest::Contains("'MinAtar/Seaquest-v0'"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(make_bare({.task = "MinAtar/Astrix-v0"}),
                       doctest::Contains("'MinAtar/Asterix-v0'"), std::invalid_argument);
  const auto refused = [](const std::string& key, const std::string& value, const char* why) {
    CAPTURE(key);
    CAPTURE(value);
    CHECK_THROWS_WITH_AS(make_minatar("MinAtar/Freeway-v1", {{key, value}}), doctest::Contains(why),
                         std::invalid_argument);
  };
  refused("sticky_action_prob", "1.1",
          "MinAtar/Freeway-v1: option sticky_action_prob is '1.1'; it must be a number from 0 to 1"
          " (default: 0.1)");
  refused("sticky_action_prob", "-0.1", "a number from 0 to 1");
  refused("sticky_action_prob", "nan", "a number from 0 to 1");
  refused("difficulty_ramping", "2", "must be true or false");
  refused("max_episode_steps", "0", "or -1 for no limit (default: -1)");
  refused("sticky_actions", "0",
          "there is no option 'sticky_actions'; nearest: "
          "'sticky_action_prob'");
  CHECK_THROWS_WITH_AS(make_bare({.task = "MinAtar/Freeway-v1", .options = {"lanes=2"}}),
                       doctest::Contains("no option 'lanes'"), std::invalid_argument);
}

TEST_CASE("Every option of a MinAtar task is documented, and leaving it out gives its default") {
  const auto first_boards = [](const std::string& name,
                               const std::map<std::string, std::string>& options) {
    const auto environment = make_minatar(name, options);
    std::vector<std::byte> seen(environment->spec().observation_bytes());
    std::vector<std::byte> all;
    environment->reset(1, seen);
    for (int i = 0; i < 200; ++i) {
      const std::vector<double> action{
          static_cast<double>(i % environment->spec().action.choices_of(0))};
      if (environment->step(action, seen).step_type == StepType::last)
        break;
      all.insert(all.end(), seen.begin(), seen.end());
    }
    return std::pair(all, environment->spec().episode_steps);
  };
  for (const std::string& name : minatar_names()) {
    CAPTURE(name);
    std::map<std::string, std::string> all;
    for (const GymOption& option : minatar_options(name)) {
      CHECK(!option.rule.empty());
      CHECK(!option.help.empty());
      CHECK(all.emplace(option.name, option.default_value).second);
    }
    CHECK(all.size() == 3);
    CHECK(first_boards(name, all) == first_boards(name, {}));
  }
}
