#include <doctest/doctest.h>

#include <cmath>

#include "env/random.hpp"
#include "env/wrappers/normalize.hpp"
#include "tests/env/pool/counting_environment.hpp"

using namespace troupe::env;

namespace {

std::vector<double> actions_at(const EnvironmentPool& pool, int step) {
  Random random(static_cast<std::uint64_t>(step) + 99);
  std::vector<double> actions(static_cast<std::size_t>(pool.environments())
                              * pool.spec().action.size());
  for (double& action : actions)
    action = random.uniform(-1, 1);
  return actions;
}

void play(EnvironmentPool& pool, PoolRows& rows, int from, int to) {
  for (int step = from; step < to; ++step)
    REQUIRE(pool.step(actions_at(pool, step), rows.batch(), patience()));
}

bool same(const PoolRows& a, const PoolRows& b) {
  return a.observations == b.observations && a.rewards == b.rewards && a.step_types == b.step_types
         && a.episode_steps == b.episode_steps && a.episode_returns == b.episode_returns;
}

} // namespace

TEST_CASE("A pool continues bit for bit from a saved state with any number of threads") {
  for (const int until : {300, 1000, 1001, 1300}) { // within an episode and between two
    CAPTURE(until);
    const EnvironmentConfig config{.task = "cheetah_run", .frame_stack = 2};
    EnvironmentPool first({.environments = 3, .threads = 1, .seed = 5}, config);
    PoolRows rows(first.spec(), 3);
    REQUIRE(first.reset(all_of(first), rows.batch(), patience()));
    play(first, rows, 0, until);
    std::vector<std::byte> state;
    first.save_state(state);
    for (const int threads : {1, 3}) {
      EnvironmentPool second({.environments = 3, .threads = threads, .seed = 5}, config);
      PoolRows others(second.spec(), 3);
      if (threads == 3) { // one that has been played before, with spares in preparation
        REQUIRE(second.reset(all_of(second), others.batch(), patience()));
        play(second, others, 0, 10);
      }
      CHECK(second.load_state(state).empty());
      EnvironmentPool third({.environments = 3, .threads = 1, .seed = 5}, config);
      CHECK(third.load_state(state).empty());
      PoolRows expected(third.spec(), 3);
      for (int step = until; step < until + 1100; ++step) {
        REQUIRE(second.step(actions_at(second, step), others.batch(), patience()));
        REQUIRE(third.step(actions_at(third, step), expected.batch(), patience()));
        REQUIRE(same(others, expected));
      }
      if (threads == 1) { // and so does the pool that was saved
        EnvironmentPool again({.environments = 3, .threads = 2, .seed = 5}, config);
        CHECK(again.load_state(state).empty());
        play(again, others, until, until + 200);
        play(first, rows, until, until + 200);
        CHECK(same(rows, others));
      }
    }
  }
}

TEST_CASE(
    "Running statistics continue from a state saved within an episode, between two or after a "
    "failure") {
  CountingEnvironment::Hooks hooks;
  hooks.step = [](std::uint64_t seed, std::int64_t step) {
    if (seed % 1000 == 1 && step == 2)
      throw std::runtime_error("cracked");
  };
  const auto make = [&](int) {
    return std::make_unique<Normalize>(std::make_unique<CountingEnvironment>(4, hooks),
                                       NormalizeOptions{});
  };
  for (int until = 0; until < 12; ++until) {
    CAPTURE(until);
    EnvironmentPool first({.environments = 3, .episode_seed = plain_seed}, make);
    EnvironmentPool second({.environments = 3, .threads = 3, .episode_seed = plain_seed}, make);
    CHECK_FALSE(second.spares());
    PoolRows rows(first.spec(), 3);
    PoolRows others(second.spec(), 3);
    REQUIRE(first.reset(all_of(first), rows.batch(), patience()));
    play(first, rows, 0, until);
    std::vector<std::byte> state;
    first.save_state(state);
    CHECK(second.load_state(state).empty());
    for (int step = until; step < until + 9; ++step) {
      play(first, rows, step, step + 1);
      play(second, others, step, step + 1);
      REQUIRE(same(rows, others));
    }
  }
  CHECK_THROWS_WITH_AS(EnvironmentPool({.environments = 3, .spares = true}, make),
                       doctest::Contains("leave spares out"), std::invalid_argument);
}

TEST_CASE("An environment that is out of service stays so in a saved state, with its error") {
  CountingEnvironment::Hooks hooks;
  hooks.step = [](std::uint64_t seed, std::int64_t) {
    if (seed >= 1000)
      throw std::runtime_error("cracked");
  };
  EnvironmentPool pool = counting_pool({.environments = 2, .failure_budget = 0}, 9, hooks);
  PoolRows rows(pool.spec(), 2);
  REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
  REQUIRE(pool.step(std::vector<double>(4), rows.batch(), patience()));
  std::vector<std::byte> state;
  pool.save_state(state);
  EnvironmentPool other = counting_pool({.environments = 2, .failure_budget = 0}, 9, hooks);
  other.load_state(state);
  CHECK(other.in_service(0));
  CHECK_FALSE(other.in_service(1));
  CHECK(other.error(1) == pool.error(1));
  REQUIRE(other.step(std::vector<double>(4), rows.batch(), patience()));
  CHECK(rows.statuses[1] == RowStatus::out_of_service);
  CHECK(rows.episode_steps[0] == 2);
}

TEST_CASE("A foreign or truncated state is refused, and the pool can be reset or loaded again") {
  EnvironmentPool pool = counting_pool({.environments = 3}, 9);
  PoolRows rows(pool.spec(), 3);
  REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
  std::vector<std::byte> state;
  pool.save_state(state);
  EnvironmentPool two = counting_pool({.environments = 2}, 9);
  CHECK_THROWS_WITH_AS(two.load_state(state),
                       doctest::Contains("has 3 environments and this pool 2"),
                       std::invalid_argument);
  for (std::size_t bytes = 0; bytes < state.size(); ++bytes) {
    CAPTURE(bytes);
    CHECK_THROWS_AS(pool.load_state(std::span(state).first(bytes)), std::invalid_argument);
    REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(rows.statuses[i] == RowStatus::ok);
      CHECK(rows.step_types[i] == StepType::first);
      CHECK(std::floor(numbers(rows, i)[0] / 1000) == static_cast<double>(i)); // its own seed
      CHECK(numbers(rows, i)[1] == 0);
    }
  }
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> garbled = state;
    garbled[random.bits() % garbled.size()] ^= static_cast<std::byte>(1 + random.bits() % 255);
    try {
      pool.load_state(garbled);
    } catch (const std::invalid_argument&) {
    }
  }
  CHECK(pool.load_state(state).empty());
  REQUIRE(pool.step(std::vector<double>(6), rows.batch(), patience()));
  CHECK(numbers(rows, 2) == std::vector<double>{2000, 1, 0});
}

TEST_CASE("Nothing is saved or loaded while environments are in flight") {
  EnvironmentPool pool = counting_pool({.environments = 2}, 9);
  pool.send_reset(std::vector<std::int32_t>{1});
  std::vector<std::byte> state;
  CHECK_THROWS_WITH_AS(pool.save_state(state), doctest::Contains("receive them first"),
                       std::invalid_argument);
  CHECK_THROWS_AS(pool.load_state(state), std::invalid_argument);
}
