#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>

#include "env/goals/goals.hpp"
#include "env/make/make.hpp"

namespace troupe::env {
namespace {

std::vector<float> numbers(const std::vector<std::byte>& observation) {
  std::vector<float> values(observation.size() / sizeof(float));
  std::memcpy(values.data(), observation.data(), observation.size());
  return values;
}

EnvironmentConfig five_bits() {
  return {.task = "bit_flipping", .options = {"bits=5"}};
}

} // namespace

TEST_CASE("A step's reward and termination match the goal outcome of its observation") {
  const auto environment = make_environment(five_bits());
  const EnvironmentSpec& spec = environment->spec();
  REQUIRE(spec.goal.size == 5);
  CHECK(spec.observations[0].shape == std::vector<std::int64_t>{10});
  std::vector<std::byte> observation(spec.observation_bytes());
  std::mt19937_64 random(3);
  int reached = 0;
  int cut = 0;
  for (std::uint64_t episode = 0; episode < 300; ++episode) {
    TimeStep step = environment->reset(episode, observation);
    int steps = 0;
    std::vector<float> before = numbers(observation);
    CHECK(!std::equal(before.begin(), before.begin() + 5, before.begin() + 5));
    while (step.step_type != StepType::last) {
      const double action = static_cast<double>(random() % 5);
      step = environment->step(std::vector<double>{action}, observation);
      ++steps;
      std::vector<float> now = numbers(observation);
      before[static_cast<std::size_t>(action)] = 1 - before[static_cast<std::size_t>(action)];
      CHECK(now == before); // one bit was flipped, the goal is unchanged
      const std::span all(now);
      const GoalOutcome outcome =
          spec.goal.outcome(all.subspan(static_cast<std::size_t>(spec.goal.achieved), 5),
                            all.subspan(static_cast<std::size_t>(spec.goal.desired), 5));
      CHECK(step.reward == outcome.reward);
      CHECK(step.discount == (outcome.terminated ? 0 : 1));
      reached += outcome.terminated ? 1 : 0;
    }
    cut += steps == 5 ? 1 : 0;
  }
  CHECK(reached > 20);
  CHECK(cut > 100);
}

TEST_CASE("Flipping each wrong bit once reaches the goal") {
  const auto environment = make_environment({.task = "bit_flipping"});
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  for (std::uint64_t episode = 0; episode < 20; ++episode) {
    TimeStep step = environment->reset(episode, observation);
    const std::vector<float> first = numbers(observation);
    double total = 0;
    int wrong = 0;
    for (std::size_t bit = 0; bit < 15; ++bit)
      if (first[bit] != first[15 + bit]) {
        ++wrong;
        step = environment->step(std::vector<double>{static_cast<double>(bit)}, observation);
        total += step.reward;
      }
    CHECK(step.step_type == StepType::last);
    CHECK(step.discount == 0);
    CHECK(total == 1 - wrong);
  }
}

TEST_CASE("Wrappers that change observations or rewards remove the goal from the spec") {
  const auto goal_size = [](EnvironmentConfig config) {
    return make_environment(config)->spec().goal.size;
  };
  CHECK(goal_size(five_bits()) == 5);
  EnvironmentConfig config = five_bits();
  config.time_limit = 3;
  CHECK(goal_size(config) == 5);
  config = five_bits();
  config.action_repeat = 2;
  CHECK(goal_size(config) == 0);
  config = five_bits();
  config.frame_stack = 2;
  CHECK(goal_size(config) == 0);
  config = five_bits();
  config.reward_scale = 2;
  CHECK(goal_size(config) == 0);
  config = five_bits();
  config.reward_clip = 0.5;
  CHECK(goal_size(config) == 0);
  config = five_bits();
  config.normalization.mode = "running";
  CHECK(goal_size(config) == 0);
  config = five_bits();
  config.observations = {"bits"};
  CHECK(goal_size(config) == 0);
}

TEST_CASE("Invalid options and states of another size are refused") {
  for (const char* bits : {"1", "65", "1.5", "2000"}) {
    const std::string rule = std::string("option bits is '") + bits
                             + "'; it must be a whole number from 2 to 64 (default: 15)";
    CHECK_THROWS_WITH_AS(make_goal_task("bit_flipping", {{"bits", bits}}),
                         doctest::Contains(rule.c_str()), std::invalid_argument);
  }
  CHECK_THROWS_AS(make_goal_task("bit_flopping"), std::invalid_argument);
  const auto few = make_goal_task("bit_flipping", {{"bits", "3"}});
  const auto many = make_goal_task("bit_flipping", {{"bits", "64"}});
  std::vector<std::byte> observation(many->spec().observation_bytes());
  many->reset(1, observation);
  std::vector<std::byte> state;
  many->save_state(state);
  CHECK(many->load_state(state).empty());
  CHECK_THROWS_AS(few->load_state(state), std::invalid_argument);
}

} // namespace troupe::env
