#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "env/classic/classic.hpp"
#include "env/classic/frozen_lake.hpp"
#include "env/classic/taxi.hpp"
#include "env/make/describe.hpp"
#include "env/plugin/check_environment.hpp"

using namespace troupe::env;

namespace {

/// A classic task and a buffer for its observations.
struct Classic {
  std::unique_ptr<Environment> environment;
  std::vector<double> observation;

  explicit Classic(const std::string& name, const std::map<std::string, std::string>& options = {})
      : environment(make_classic(name, options)),
        observation(environment->spec().observation_bytes() / sizeof(double)) {}

  std::span<std::byte> buffer() { return std::as_writable_bytes(std::span(observation)); }
  TimeStep reset(std::uint64_t seed) { return environment->reset(seed, buffer()); }
  TimeStep step(double action) { return environment->step(std::span(&action, 1), buffer()); }
};

} // namespace

TEST_CASE("Classic tasks have Gymnasium's actions, observations and time limits") {
  struct Row {
    const char* name;
    std::size_t numbers; // size of an observation
    ActionSpec action;
    std::int64_t steps;
    double seconds;
  };
  const Row rows[] = {
      {"Acrobot-v1", 6, one_of(3), 500, .2},
      {"CartPole-v1", 4, one_of(2), 500, .02},
      {"FrozenLake-v1", 16, one_of(4), 100, 1},
      {"FrozenLake8x8-v1", 64, one_of(4), 200, 1},
      {"MountainCar-v0", 2, one_of(3), 200, 1},
      {"MountainCarContinuous-v0", 2, {.minimum = {-1}, .maximum = {1}}, 999, 1},
      {"Pendulum-v1", 3, {.minimum = {-2}, .maximum = {2}}, 200, .05},
      {"Taxi-v4", 500, one_of(6), 200, 1},
  };
  std::vector<std::string> names;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    names.emplace_back(row.name);
    const Description described = describe_environment(row.name);
    CHECK(described.tags == std::vector<std::string>{"classic"});
    CHECK(described.spec.name == row.name);
    CHECK(described.spec.observation_bytes() == row.numbers * sizeof(double));
    CHECK(described.spec.action == row.action);
    CHECK(described.spec.episode_steps == row.steps);
    CHECK(described.spec.control_timestep_seconds == row.seconds);
  }
  CHECK(names == classic_names());
}

TEST_CASE("Classic tasks obey the contract of environments") {
  const auto obeys = [](const std::string& name,
                        const std::map<std::string, std::string>& options) {
    CAPTURE(name);
    for (const CheckFinding& finding :
         check_environment([&] { return make_classic(name, options); }))
      FAIL_CHECK(finding.rule, ": ", finding.text);
  };
  for (const std::string& name : classic_names())
    obeys(name, {});
  obeys("Taxi-v4", {{"is_rainy", "true"}, {"fickle_passenger", "true"}});
  obeys("MountainCarContinuous-v0", {{"goal_velocity", "0.01"}, {"max_episode_steps", "30"}});
}

TEST_CASE("A truncated episode keeps its discount, and a terminated one has discount 0") {
  Classic car("MountainCar-v0", {{"max_episode_steps", "3"}});
  car.reset(1);
  CHECK(car.step(1).step_type == StepType::mid);
  CHECK(car.step(1).step_type == StepType::mid);
  const TimeStep cut = car.step(1);
  CHECK(cut.step_type == StepType::last);
  CHECK(cut.discount == 1);
  Classic pole("CartPole-v1");
  pole.reset(1);
  TimeStep step;
  int steps = 0;
  do {
    step = pole.step(1);
    ++steps;
  } while (step.step_type != StepType::last);
  CHECK(step.discount == 0);
  CHECK(step.reward == 1);
  CHECK(steps < 15); // when always pushed to the same side
}

TEST_CASE("A limit of -1 steps means no limit") {
  Classic pendulum("Pendulum-v1", {{"max_episode_steps", "-1"}});
  CHECK(pendulum.environment->spec().episode_steps == 0);
  pendulum.reset(1);
  for (int i = 0; i < 1000; ++i)
    REQUIRE(pendulum.step(0).step_type == StepType::mid);
}

TEST_CASE("A loaded state of a game of chance continues bit for bit") {
  for (const std::string name : {"FrozenLake8x8-v1", "Taxi-v4"}) {
    CAPTURE(name);
    const std::map<std::string, std::string> options =
        name == "Taxi-v4"
            ? std::map<std::string, std::string>{{"is_rainy", "true"}, {"fickle_passenger", "true"}}
            : std::map<std::string, std::string>{};
    Classic saved(name, options);
    saved.reset(7);
    for (int i = 0; i < 5; ++i)
      saved.step(i % 4);
    std::vector<std::byte> state;
    saved.environment->save_state(state);
    Classic loaded(name, options);
    CHECK(loaded.environment->load_state(state).empty());
    for (int i = 0; i < 30; ++i) {
      const TimeStep a = saved.step(i % 4);
      const TimeStep b = loaded.step(i % 4);
      REQUIRE(a.reward == b.reward);
      REQUIRE(a.step_type == b.step_type);
      REQUIRE(saved.observation == loaded.observation);
      if (a.step_type == StepType::last)
        break;
    }
  }
}

TEST_CASE("A state that is invalid for the game is not loaded") {
  Classic lake("FrozenLake-v1");
  Classic taxi("Taxi-v4");
  for (Classic* classic : {&lake, &taxi}) {
    classic->reset(1);
    std::vector<std::byte> state;
    classic->environment->save_state(state);
    for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{500}}) {
      std::memcpy(state.data(), &number, sizeof number); // begins with the game's state
      CHECK_THROWS_WITH_AS(classic->environment->load_state(state),
                           doctest::Contains("not a state of this game"), std::invalid_argument);
    }
  }
}

TEST_CASE("An invalid choice is refused, and a torque beyond its bounds is clipped") {
  Classic pole("CartPole-v1");
  pole.reset(1);
  for (const double bad : {-1., .5, 2.})
    CHECK_THROWS_WITH_AS(pole.step(bad), doctest::Contains("a whole number from 0 to 1"),
                         std::invalid_argument);
  CHECK(pole.step(0).step_type == StepType::mid); // the episode continues
  Classic strong("Pendulum-v1");
  Classic strongest("Pendulum-v1");
  strong.reset(1);
  strongest.reset(1);
  CHECK(strong.step(2).reward == strongest.step(1e6).reward);
  CHECK(strong.observation == strongest.observation);
}

TEST_CASE("The observation of a numbered state is 1 at its number and 0 elsewhere") {
  Classic taxi("Taxi-v4");
  const auto& game = dynamic_cast<const GameEnvironment<classic::Taxi>&>(*taxi.environment);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    taxi.reset(seed);
    for (int i = 0; i < 8; ++i) {
      taxi.step(i % 4);
      const auto number = static_cast<std::size_t>(game.state().number);
      CHECK(taxi.observation[number] == 1);
      CHECK(std::ranges::count(taxi.observation, 0) == 499);
    }
  }
}

TEST_CASE("Transitions are drawn with the probabilities of the table") {
  const auto follows = [](const std::string& name,
                          const std::map<std::string, std::string>& options, auto game,
                          std::int64_t state, std::int64_t action) {
    using Game = decltype(game);
    CAPTURE(name);
    CAPTURE(action);
    Classic classic(name, options);
    auto& environment = dynamic_cast<GameEnvironment<typename Game::type>&>(*classic.environment);
    classic.reset(3);
    constexpr int kDraws = 20'000;
    std::map<std::int64_t, double> expected;
    std::map<std::int64_t, double> count;
    for (const auto& transition : environment.game().transitions(state, action))
      expected[transition.state] += transition.probability;
    for (int i = 0; i < kDraws; ++i) {
      environment.set_state({state});
      classic.step(static_cast<double>(action));
      const auto found = std::ranges::find(classic.observation, 1);
      ++count[found - classic.observation.begin()];
    }
    for (const auto& [next, probability] : expected)
      CHECK(std::abs(count[next] - kDraws * probability)
            <= 5 * std::sqrt(kDraws * probability * (1 - probability)));
    double counted = 0;
    for (const auto& [next, times] : count)
      counted += expected.contains(next) && expected[next] > 0 ? times : 0;
    CHECK(counted == kDraws);
  };
  const std::type_identity<classic::FrozenLake> lake;
  const std::type_identity<classic::Taxi> taxi;
  for (std::int64_t action = 0; action < 4; ++action) {
    follows("FrozenLake-v1", {}, lake, 10, action);
    follows("FrozenLake-v1", {{"success_rate", "0.7"}}, lake, 6, action);
    follows("Taxi-v4", {{"is_rainy", "true"}}, taxi, ((2 * 5 + 2) * 5 + 4) * 4, action);
  }
}
