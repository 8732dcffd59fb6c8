#include "env/make/changing_environment.hpp"

#include <doctest/doctest.h>

#include "env/make/make.hpp"

using namespace troupe::env;

namespace {

constexpr std::uint64_t kSeed = 7;

/// Pendulum-v1 with episodes of the given length.
struct Played {
  std::shared_ptr<TaskOptions> options =
      std::make_shared<TaskOptions>(TaskOptions::List{"max_episode_steps=3"});
  ChangingEnvironment environment{{.task = "Pendulum-v1"}, options};
  std::vector<std::byte> observation =
      std::vector<std::byte>(environment.spec().observation_bytes());

  void begin() { environment.reset(kSeed, observation); }
  int steps_to_the_end() {
    const std::vector<double> action(environment.spec().action.size(), 0.3);
    int steps = 1;
    while (environment.step(action, observation).step_type != StepType::last)
      ++steps;
    return steps;
  }
};

} // namespace

TEST_CASE("Changed options apply from the next episode on") {
  Played played;
  played.begin();
  played.options->set({"max_episode_steps=5"});
  CHECK(played.steps_to_the_end() == 3);
  played.begin();
  CHECK(played.steps_to_the_end() == 5);
}

TEST_CASE("A saved state continues its episode with the options that the episode began with") {
  Played first, second;
  first.options->set({"max_episode_steps=5"});
  first.begin();
  std::vector<std::byte> state;
  first.environment.save_state(state);
  state.push_back(std::byte{1});
  CHECK(second.environment.load_state(state).size() == 1);
  CHECK(second.steps_to_the_end() == 5);
  CHECK(first.steps_to_the_end() == 5);
  CHECK(first.observation == second.observation);
  second.begin();
  CHECK(second.steps_to_the_end() == 3);
}

TEST_CASE("Running statistics of the observations outlive a change of the options") {
  const EnvironmentConfig config{.task = "Pendulum-v1",
                                 .options = {"max_episode_steps=3"},
                                 .normalization = {.mode = "running"}};
  const auto options = std::make_shared<TaskOptions>(config.options);
  ChangingEnvironment changing(config, options);
  const auto plain = make_environment(config);
  std::vector<std::byte> ours(changing.spec().observation_bytes());
  std::vector<std::byte> expected(ours.size());
  const std::vector<double> action(changing.spec().action.size(), 0.3);
  changing.reset(kSeed, ours);
  plain->reset(kSeed, expected);
  for (int i = 0; i < 3; ++i) {
    changing.step(action, ours);
    plain->step(action, expected);
  }
  options->set({"max_episode_steps=5"});
  changing.reset(kSeed + 1, ours);
  plain->reset(kSeed + 1, expected);
  CHECK(ours == expected);
}

TEST_CASE("Damaged states and refused options throw, and the environment stays usable") {
  Played played;
  played.begin();
  std::vector<std::byte> state;
  played.environment.save_state(state);
  for (std::size_t size = 0; size < state.size(); ++size)
    CHECK_THROWS_AS(played.environment.load_state(std::span(state).first(size)),
                    std::invalid_argument);
  CHECK(played.environment.load_state(state).empty());
  CHECK(played.steps_to_the_end() == 3);
  played.options->set({"speed=3"});
  CHECK_THROWS_WITH_AS(played.begin(), doctest::Contains("no option 'speed'"),
                       std::invalid_argument);
  played.options->set({"max_episode_steps=4"});
  played.begin();
  CHECK(played.steps_to_the_end() == 4);
}
