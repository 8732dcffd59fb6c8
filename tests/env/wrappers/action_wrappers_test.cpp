#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "env/checks.hpp"
#include "env/wrappers/action_clip.hpp"
#include "env/wrappers/action_noise.hpp"
#include "env/wrappers/action_scale.hpp"
#include "env/wrappers/reward_scale.hpp"
#include "env/wrappers/time_limit.hpp"
#include "tests/env/fake_environment.hpp"

using namespace troupe::env;

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One action without bounds, one between -4 and 4. Observes the action that it received.
class Unbounded final : public Environment {
public:
  Unbounded() {
    spec_.name = "unbounded";
    spec_.observations = {{"action", ElementType::float64, {2}}};
    spec_.action = {{-kInfinity, -4}, {kInfinity, 4}};
  }
  const EnvironmentSpec& spec() const override { return spec_; }
  TimeStep reset(std::uint64_t, std::span<std::byte>) override { return {}; }
  TimeStep step(std::span<const double> action, std::span<std::byte> out) override {
    std::memcpy(out.data(), action.data(), out.size());
    return {StepType::mid, -3, 1};
  }
  void save_state(std::vector<std::byte>&) const override {}
  std::span<const std::byte> load_state(std::span<const std::byte> in) override { return in; }

private:
  EnvironmentSpec spec_;
};

/// Actions are a continuous number between -4 and 4, between a choice of 9 and one of 2. Observes
/// the action that it received.
class Choosing final : public Environment {
public:
  Choosing() {
    spec_.name = "choosing";
    spec_.observations = {{"action", ElementType::float64, {3}}};
    spec_.action = {.minimum = {0, -4, 0}, .maximum = {8, 4, 1}, .choices = {9, 0, 2}};
  }
  const EnvironmentSpec& spec() const override { return spec_; }
  TimeStep reset(std::uint64_t, std::span<std::byte>) override { return {}; }
  TimeStep step(std::span<const double> action, std::span<std::byte> out) override {
    std::memcpy(out.data(), action.data(), out.size());
    return {StepType::mid, 0, 1};
  }
  void save_state(std::vector<std::byte>&) const override {}
  std::span<const std::byte> load_state(std::span<const std::byte> in) override { return in; }

private:
  EnvironmentSpec spec_;
};

} // namespace

TEST_CASE("A dimension without bounds keeps its unit when actions are scaled") {
  Played played(std::make_unique<ActionScale>(std::make_unique<Unbounded>()));
  CHECK(played.environment->spec().action == ActionSpec{{-1, -1}, {1, 1}});
  played.reset(0).step({.5, .5});
  CHECK(numbers<double>(played.observation) == std::vector<double>{.5, 2});
}

TEST_CASE("Actions are scaled from [-1, 1] to the bounds, with its ends on the bounds") {
  Played played(std::make_unique<ActionScale>(std::make_unique<Unbounded>()));
  for (const auto& [given, expected] : {std::pair{-1., -4.}, {0., 0.}, {1., 4.}, {99., 4.}}) {
    played.reset(0).step({0, given});
    CHECK(numbers<double>(played.observation)[1] == expected);
  }
}

TEST_CASE("Clipping narrows the bounds, and an action outside them becomes the nearest bound") {
  std::vector<double> given;
  Played played(std::make_unique<ActionClip>(std::make_unique<Counting>(&given), -1, .5));
  CHECK(played.environment->spec().action == ActionSpec{{-1, 0}, {.5, .5}});
  played.reset(0).step({-9, 9});
  CHECK(given == std::vector<double>{-1, .5});
  played.step({.25, .25});
  CHECK(given == std::vector<double>{.25, .25});
  CHECK_THROWS_WITH_AS(ActionClip(std::make_unique<Counting>(), -1, -.5),
                       doctest::Contains("action[1]"), std::invalid_argument);
  CHECK_THROWS_AS(played.step({kNan, 0}), std::invalid_argument);
  CHECK_THROWS_AS(played.step({0}), std::invalid_argument);
}

TEST_CASE("Action noise has the given deviation, stays within the bounds and depends on the seed") {
  std::vector<double> given;
  const auto make = [&](double deviation) {
    return Played(std::make_unique<ActionNoise>(
        std::make_unique<TimeLimit>(std::make_unique<Unbounded>(), 1000), deviation));
  };
  CHECK_THROWS_WITH_AS(make(.1), doctest::Contains("action[0]"), std::invalid_argument);
  Played noisy(std::make_unique<ActionNoise>(
      std::make_unique<ActionScale>(std::make_unique<Unbounded>()), .1));
  noisy.reset(3);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    noisy.step({.2, .99});
    const auto seen = numbers<double>(noisy.observation);
    sum += seen[0] - .2;
    squares += (seen[0] - .2) * (seen[0] - .2);
    REQUIRE(seen[1] <= 4);
  }
  CHECK(std::abs(sum / kDraws) < 4 * .1 / std::sqrt(kDraws));
  CHECK(std::sqrt(squares / kDraws) == doctest::Approx(.1).epsilon(.03));
  const auto sequence = [&](std::uint64_t seed) {
    noisy.reset(seed);
    std::vector<double> all;
    for (int i = 0; i < 5; ++i)
      all.push_back(numbers<double>(noisy.step({0, 0}).observation)[0]);
    return all;
  };
  CHECK(sequence(1) == sequence(1));
  CHECK(sequence(1) != sequence(2));
  for (const double bad : {-.1, 10.5, kNan}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(
        ActionNoise(std::make_unique<ActionScale>(std::make_unique<Unbounded>()), bad),
        doctest::Contains("action_noise"), std::invalid_argument);
  }
}

TEST_CASE("A choice must be a whole number in its range, and a continuous number must be finite") {
  const EnvironmentSpec spec = Choosing().spec();
  for (const double choice : {0., 1., 8.})
    CHECK_NOTHROW(check_action(spec, std::vector<double>{choice, 99, 1}));
  for (const double bad : {.5, -1., 9., 8.000001, 1e300, kInfinity, -kInfinity, kNan}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(check_action(spec, std::vector<double>{bad, 0, 0}),
                         doctest::Contains("environment choosing: action[0] is"),
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(check_action(spec, std::vector<double>{0, 0, bad}),
                         doctest::Contains("; it must be a whole number from 0 to 1"),
                         std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(check_action(spec, std::vector<double>{0, kNan, 0}),
                       doctest::Contains("actions must be finite"), std::invalid_argument);
}

TEST_CASE("Wrappers that change actions leave choices unchanged and refuse invalid ones") {
  const auto wrapped = [](auto wrap) {
    Played played(wrap(std::make_unique<Choosing>()));
    const ActionSpec& action = played.environment->spec().action;
    CHECK(action.choices == std::vector<std::int64_t>{9, 0, 2});
    CHECK(problem_of(action).empty());
    CHECK(action.maximum[0] == 8);
    CHECK(action.maximum[2] == 1);
    for (const double choice : {0., 3., 8.}) {
      const double second = choice == 3 ? 1 : 0;
      played.reset(7).step({choice, .25, second});
      const auto seen = numbers<double>(played.observation);
      CHECK(seen[0] == choice);
      CHECK(seen[2] == second);
    }
    for (const double bad : {.5, -1., 9., kNan}) {
      CAPTURE(bad);
      CHECK_THROWS_AS(played.step({bad, 0, 0}), std::invalid_argument);
    }
    played.step({1, .25, 1});
    return std::pair(action, numbers<double>(played.observation)[1]);
  };
  const auto scaled =
      wrapped([](auto inner) { return std::make_unique<ActionScale>(std::move(inner)); });
  CHECK(scaled.first.minimum == std::vector<double>{0, -1, 0});
  CHECK(scaled.second == 1);
  const auto clipped = wrapped([](auto inner) {
    return std::make_unique<ActionClip>(std::move(inner), -.125, .125); // excludes every choice
  });
  CHECK(clipped.first.minimum == std::vector<double>{0, -.125, 0});
  CHECK(clipped.second == .125);
  const auto noisy =
      wrapped([](auto inner) { return std::make_unique<ActionNoise>(std::move(inner), .5); });
  CHECK(noisy.second != .25);
}

TEST_CASE("Rewards are scaled and clipped, and discounts and step types are unchanged") {
  Played scaled(std::make_unique<RewardScale>(std::make_unique<Counting>(), 2));
  scaled.reset(0).step({0, 0});
  CHECK(scaled.last.reward == 2);
  scaled.step({0, 0});
  CHECK(scaled.last.reward == 4);
  CHECK(scaled.last.discount == .5);
  CHECK(scaled.reset(0).last.reward == 0); // a first step has no reward
  Played clipped(std::make_unique<RewardClip>(std::make_unique<Counting>(), -2, 2));
  clipped.reset(0);
  for (const double expected : {1., 2., 2., 2., 2.})
    CHECK(clipped.step({0, 0}).last.reward == expected);
  CHECK(clipped.last.step_type == StepType::last);
  CHECK(Played(std::make_unique<RewardClip>(std::make_unique<Unbounded>(), -2, 2))
            .reset(0)
            .step({0, 0})
            .last.reward
        == -2);
  CHECK_THROWS_AS(RewardScale(std::make_unique<Counting>(), 0), std::invalid_argument);
  CHECK_THROWS_AS(RewardScale(std::make_unique<Counting>(), kNan), std::invalid_argument);
  CHECK_THROWS_AS(RewardScale(std::make_unique<Counting>(), kInfinity), std::invalid_argument);
  CHECK_THROWS_AS(RewardClip(std::make_unique<Counting>(), 1, 1), std::invalid_argument);
  CHECK_THROWS_AS(RewardClip(std::make_unique<Counting>(), kNan, 1), std::invalid_argument);
}

TEST_CASE(
    "A time limit truncates: the last step keeps its discount, and then only reset() continues") {
  Played limited(std::make_unique<TimeLimit>(std::make_unique<Unbounded>(), 3));
  CHECK(limited.environment->spec().episode_steps == 3);
  for (int episode = 0; episode < 2; ++episode) {
    limited.reset(0);
    CHECK(limited.step({0, 0}).last.step_type == StepType::mid);
    CHECK(limited.step({0, 0}).last.step_type == StepType::mid);
    CHECK(limited.step({0, 0}).last.step_type == StepType::last);
    CHECK(limited.last.discount == 1);
    CHECK_THROWS_WITH_AS(limited.step({0, 0}), doctest::Contains("reset()"), std::invalid_argument);
  }
  Played longer(std::make_unique<TimeLimit>(std::make_unique<Counting>(), 100));
  CHECK(longer.environment->spec().episode_steps == 5); // the limit of the inner one applies first
  longer.reset(0);
  for (int i = 0; i < 5; ++i)
    longer.step({0, 0});
  CHECK(longer.last.step_type == StepType::last);
  CHECK_THROWS_AS(longer.step({0, 0}), std::invalid_argument);
  CHECK_THROWS_AS(Played(std::make_unique<TimeLimit>(std::make_unique<Counting>(), 3)).step({0, 0}),
                  std::invalid_argument);
  CHECK_THROWS_AS(TimeLimit(std::make_unique<Counting>(), 0), std::invalid_argument);
  CHECK_THROWS_AS(TimeLimit(std::make_unique<Counting>(), 2'000'000'000), std::invalid_argument);
}

TEST_CASE("Action noise and a time limit continue from a saved state") {
  const auto make = [] {
    return Played(std::make_unique<ActionNoise>(
        std::make_unique<ActionScale>(std::make_unique<TimeLimit>(std::make_unique<Counting>(), 4)),
        .3));
  };
  Played a = make();
  a.reset(7).step({0, 0}).step({0, 0});
  std::vector<std::byte> state;
  a.environment->save_state(state);
  Played b = make();
  CHECK(b.environment->load_state(state).empty());
  for (int i = 0; i < 2; ++i) {
    CHECK(a.step({.5, .5}).last.reward == b.step({.5, .5}).last.reward);
    CHECK(a.observation == b.observation);
    CHECK(a.last.step_type == b.last.step_type);
  }
  CHECK(a.last.step_type == StepType::last);
  for (std::size_t size = 0; size < state.size(); ++size)
    CHECK_THROWS_AS(b.environment->load_state(std::span(state).first(size)), std::invalid_argument);
}
