#include <doctest/doctest.h>

#include <map>

#include "tests/env/pool/counting_environment.hpp"

using namespace troupe::env;

namespace {

/// The results of one environment, in the order of asynchronous play.
struct Story {
  std::vector<std::vector<double>> observations;
  std::vector<double> rewards;
  bool operator==(const Story&) const = default;
};

std::map<int, Story> play(PoolOptions options, std::size_t batch, int steps) {
  options.environments = 7;
  EnvironmentPool pool = counting_pool(options, 9);
  PoolRows rows(pool.spec(), batch);
  std::map<int, Story> stories;
  std::vector<int> sent(7, 0);
  pool.send_reset(all_of(pool));
  std::size_t left = static_cast<std::size_t>(steps) * 7;
  while (pool.in_flight() > 0) {
    if (pool.in_flight() < batch)
      rows = PoolRows(pool.spec(), pool.in_flight());
    REQUIRE(pool.receive(rows.batch(), patience()));
    std::vector<std::int32_t> ids;
    std::vector<float> actions;
    for (std::size_t i = 0; i < rows.rewards.size(); ++i) {
      const int id = rows.environments[i];
      Story& story = stories[id];
      story.observations.push_back(numbers(rows, i));
      story.rewards.push_back(rows.rewards[i]);
      if (sent[static_cast<std::size_t>(id)]++ == steps)
        continue;
      ids.push_back(id);
      actions.push_back(static_cast<float>(sent[static_cast<std::size_t>(id)]) / 64);
      actions.push_back(static_cast<float>(id) / 64);
      --left;
    }
    pool.send(ids, actions);
  }
  CHECK(left == 0);
  return stories;
}

} // namespace

TEST_CASE("Asynchronous play gives the same results for any number of threads and any batch size") {
  const auto expected = play({.threads = 1}, 7, 200);
  CHECK(expected.size() == 7);
  CHECK(expected.at(3).observations.size() == 201);
  for (const std::size_t batch : {1U, 3U, 7U})
    for (const int threads : {1, 2, 4})
      for (const bool caller_plays : {true, false})
        for (const auto binding : {PoolThreads::shared, PoolThreads::bound}) {
          CAPTURE(batch);
          CAPTURE(threads);
          CAPTURE(caller_plays);
          const auto got = play(
              {.threads = threads, .caller_plays = caller_plays, .binding = binding}, batch, 200);
          CHECK(got == expected);
        }
}

TEST_CASE("The environments that are ready first are received without waiting for a slow one") {
  Gate gate;
  CountingEnvironment::Hooks hooks;
  hooks.step = [&](std::uint64_t seed, std::int64_t) {
    if (seed / 1000 == 0)
      gate.pass();
  };
  EnvironmentPool pool =
      counting_pool({.environments = 3, .threads = 2, .caller_plays = false}, 100, hooks);
  PoolRows all(pool.spec(), 3), two(pool.spec(), 2), one(pool.spec(), 1);
  pool.send_reset(all_of(pool));
  REQUIRE(pool.receive(all.batch(), patience()));
  const std::vector<double> actions(6, 0);
  pool.send(all_of(pool), actions);
  for (int step = 1; step < 50; ++step) {
    REQUIRE(pool.receive(two.batch(), patience()));
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(two.environments[i] != 0);
      CHECK(two.episode_steps[i] == step);
    }
    pool.send(two.environments, std::span(actions).first(4));
  }
  REQUIRE(pool.receive(two.batch(), patience()));
  CHECK_FALSE(pool.receive(one.batch(), no_time()));
  CHECK_FALSE(
      pool.receive(one.batch(), EnvironmentPool::Clock::now() + std::chrono::milliseconds(1)));
  CHECK(pool.in_flight() == 1);
  gate.open();
  REQUIRE(pool.receive(one.batch(), patience()));
  CHECK(one.environments[0] == 0);
  CHECK(one.episode_steps[0] == 1);
}

TEST_CASE("An environment that is being reset is not in the batch, and the others continue") {
  for (const bool spares : {false, true}) {
    Gate gate;
    CountingEnvironment::Hooks hooks;
    hooks.reset = [&](std::uint64_t seed) {
      if (seed == 1) // environment 0, second episode
        gate.pass();
    };
    EnvironmentPool pool = counting_pool(
        {.environments = 3, .threads = 3, .caller_plays = false, .spares = spares}, 4, hooks);
    PoolRows all(pool.spec(), 3), two(pool.spec(), 2), one(pool.spec(), 1);
    pool.send_reset(all_of(pool));
    REQUIRE(pool.receive(all.batch(), patience()));
    const std::vector<double> actions(6, 0);
    for (int step = 0; step < 4; ++step) {
      pool.send(all_of(pool), actions);
      REQUIRE(pool.receive(all.batch(), patience()));
    }
    pool.send(all_of(pool), actions); // resets
    for (int step = 0; step < 40; ++step) {
      REQUIRE(pool.receive(two.batch(), patience()));
      CHECK(two.environments[0] != 0);
      CHECK(two.environments[1] != 0);
      pool.send(two.environments, std::span(actions).first(4));
    }
    gate.open();
    REQUIRE(pool.receive(two.batch(), patience()));
    REQUIRE(pool.receive(one.batch(), patience()));
  }
}

TEST_CASE("Invalid sends and receives are refused and change nothing") {
  EnvironmentPool pool = counting_pool({.environments = 3, .threads = 2}, 100);
  PoolRows three(pool.spec(), 3), two(pool.spec(), 2);
  const std::vector<double> actions(6, 0);
  const auto send = [&](std::vector<std::int32_t> ids, std::size_t numbers) {
    pool.send(ids, std::vector<double>(numbers));
  };
  CHECK_THROWS_WITH_AS(pool.receive(two.batch(), patience()),
                       doctest::Contains("0 environments of the pool are in flight"),
                       std::invalid_argument);
  send({0, 1}, 4);
  CHECK_THROWS_WITH_AS(send({2, 1}, 4),
                       doctest::Contains("environment 1 of the pool is already in flight"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(send({2, 2}, 4), doctest::Contains("name it once"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(send({-1}, 2),
                       doctest::Contains("environment -1 of the pool does not exist"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(send({3}, 2), doctest::Contains("there are 0 to 2"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(send({2}, 3), doctest::Contains("actions has 3 entries; it needs 2"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(pool.step(actions, three.batch(), patience()),
                       doctest::Contains("receive them first"), std::invalid_argument);
  CHECK_THROWS_AS(pool.receive(three.batch(), patience()), std::invalid_argument);
  CHECK_THROWS_AS(pool.error(0), std::invalid_argument);
  REQUIRE(pool.receive(two.batch(), patience()));
  send({2}, 2);
  send({0, 1}, 4);
  REQUIRE(pool.receive(three.batch(), patience()));
}

TEST_CASE("A pool may be destroyed while environments are in flight") {
  for (int i = 0; i < 50; ++i) {
    EnvironmentPool pool =
        counting_pool({.environments = 4, .threads = 3, .caller_plays = i % 2 == 0}, 5);
    pool.send_reset(all_of(pool));
  }
}
