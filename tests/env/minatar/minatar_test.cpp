#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "env/make/describe.hpp"
#include "env/minatar/freeway.hpp"
#include "env/minatar/minatar.hpp"
#include "env/plugin/check_environment.hpp"
#include "tests/env/minatar/played_game.hpp"

using namespace troupe::env;

TEST_CASE("The games have MinAtar's actions and observations, and no time limit") {
  struct Row {
    const char* game;
    std::int64_t channels;
    std::int64_t minimal_actions;
  };
  const Row rows[] = {{"Asterix", 4, 5},
                      {"Breakout", 4, 3},
                      {"Freeway", 7, 3},
                      {"Seaquest", 10, 6},
                      {"SpaceInvaders", 6, 4}};
  std::vector<std::string> names;
  for (const Row& row : rows)
    for (const char* version : {"-v0", "-v1"}) {
      const std::string name = std::string("MinAtar/") + row.game + version;
      CAPTURE(name);
      names.push_back(name);
      const Description described = describe_environment(name);
      CHECK(described.problem.empty());
      CHECK(described.tags == std::vector<std::string>{"minatar"});
      CHECK(described.spec.name == name);
      CHECK(described.spec.observations
            == std::vector<ArraySpec>{{"board", ElementType::uint8, {row.channels, 10, 10}}});
      CHECK(described.spec.action == one_of(version[2] == '0' ? 6 : row.minimal_actions));
      CHECK(described.spec.episode_steps == 0);
    }
  CHECK(names == minatar_names());
}

TEST_CASE("MinAtar's games obey the contract of environments") {
  const auto obeys = [](const std::string& name,
                        const std::map<std::string, std::string>& options) {
    CAPTURE(name);
    for (const CheckFinding& finding :
         check_environment([&] { return make_minatar(name, options); }))
      if (finding.error)
        FAIL_CHECK(finding.rule, ": ", finding.text);
  };
  for (const std::string& name : minatar_names()) {
    obeys(name, {});
    obeys(name, {{"sticky_action_prob", "0.5"},
                 {"difficulty_ramping", "false"},
                 {"max_episode_steps", "30"}});
  }
}

TEST_CASE("A wrapped game keeps its picture, and frames are stacked along the channels") {
  const auto environment =
      make_environment({.task = "MinAtar/Breakout-v0", .frame_stack = 2, .time_limit = 5});
  CHECK(environment->spec().observations
        == std::vector<ArraySpec>{{"board", ElementType::uint8, {8, 10, 10}}});
  CHECK(environment->spec().action == one_of(6));
  std::vector<std::byte> seen(environment->spec().observation_bytes());
  environment->reset(1, seen);
  CHECK(std::ranges::equal(std::span(seen).first(400), std::span(seen).last(400)));
  TimeStep step;
  for (int i = 0; i < 5; ++i) {
    CHECK(step.step_type != StepType::last);
    step = environment->step(std::vector<double>{0}, seen);
  }
  CHECK(step.step_type == StepType::last);
  CHECK(step.discount == 1);
  CHECK_FALSE(std::ranges::equal(std::span(seen).first(400), std::span(seen).last(400)));
}

TEST_CASE("An observation is 255 where an object is and 0 elsewhere") {
  PlayedGame breakout("MinAtar/Breakout-v0");
  breakout.reset(1);
  const auto cells = [&](std::size_t channel) {
    return std::span(breakout.observation).subspan(channel * 100, 100);
  };
  CHECK(cells(0)[94] == std::byte{255}); // the paddle
  CHECK(std::ranges::count(cells(0), std::byte{255}) == 1);
  CHECK(std::ranges::count(cells(1), std::byte{255}) == 1);
  CHECK(std::ranges::all_of(cells(3).subspan(10, 30),
                            [](std::byte b) { return b == std::byte{255}; }));
  CHECK(std::ranges::count(breakout.observation, std::byte{255}) == 33);
  CHECK(std::ranges::count(breakout.observation, std::byte{0}) == 400 - 33);
}

TEST_CASE("A sticky action replaces the given action with the configured probability") {
  for (const double probability : {0., .25, 1.}) {
    CAPTURE(probability);
    PlayedGame asterix("MinAtar/Asterix-v0", {{"sticky_action_prob", std::to_string(probability)}});
    int moved = 0;
    constexpr int kEpisodes = 2000;
    for (int seed = 0; seed < kEpisodes; ++seed) {
      asterix.reset(static_cast<std::uint64_t>(seed));
      asterix.step(1); // left; sticky actions repeat the no-op
      moved += asterix.observation[54] == std::byte{255};
    }
    const double expected = kEpisodes * (1 - probability);
    CHECK(std::abs(moved - expected) <= 5 * std::sqrt(kEpisodes * probability * (1 - probability)));
  }
}

TEST_CASE("Freeway terminates after 2501 steps with discount 0") {
  PlayedGame freeway("MinAtar/Freeway-v1");
  freeway.reset(1);
  for (int i = 0; i < 2500; ++i)
    REQUIRE(freeway.step(0).step_type == StepType::mid);
  const TimeStep last = freeway.step(0);
  CHECK(last.step_type == StepType::last);
  CHECK(last.discount == 0);
}

TEST_CASE("Staying at Seaquest's surface never ends the episode unless there is a time limit") {
  PlayedGame endless("MinAtar/Seaquest-v0");
  endless.reset(1);
  for (int i = 0; i < 5000; ++i)
    REQUIRE(endless.step(0).step_type == StepType::mid);
  PlayedGame limited("MinAtar/Seaquest-v0", {{"max_episode_steps", "100"}});
  limited.reset(1);
  for (int i = 0; i < 99; ++i)
    REQUIRE(limited.step(0).step_type == StepType::mid);
  const TimeStep cut = limited.step(0);
  CHECK(cut.step_type == StepType::last);
  CHECK(cut.discount == 1);
}

TEST_CASE("A choice that is not one of the game's actions is refused") {
  PlayedGame breakout("MinAtar/Breakout-v1");
  breakout.reset(1);
  for (const double bad : {-1., .5, 3.})
    CHECK_THROWS_WITH_AS(breakout.step(bad), doctest::Contains("a whole number from 0 to 2"),
                         std::invalid_argument);
  CHECK(breakout.step(2).step_type == StepType::mid); // the episode continues
}

TEST_CASE("one_below(n) draws every number from 0 to n - 1 equally often") {
  Random random(1);
  minatar::RandomChance chance(random);
  for (const std::int32_t n : {1, 2, 5, 8}) {
    std::vector<int> counts(static_cast<std::size_t>(n));
    constexpr int kDraws = 20'000;
    for (int i = 0; i < kDraws; ++i)
      ++counts.at(static_cast<std::size_t>(chance.one_below(n)));
    for (const int count : counts)
      CHECK(std::abs(count - kDraws / n) <= 5 * std::sqrt(kDraws / n));
  }
}
