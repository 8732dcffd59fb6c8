#include <doctest/doctest.h>

#include <mutex>
#include <set>

#include "tests/env/pool/counting_environment.hpp"

using namespace troupe::env;

TEST_CASE("Environments keep stepping while a spare resets slowly") {
  for (const bool caller_plays : {true, false}) {
    Gate gate;
    std::atomic<int> resetting = 0;
    CountingEnvironment::Hooks hooks;
    hooks.reset = [&](std::uint64_t seed) {
      if (seed % 1000 == 1) {
        ++resetting;
        gate.pass();
      }
    };
    EnvironmentPool pool = counting_pool(
        {.environments = 4, .threads = 2, .caller_plays = caller_plays}, 1'000'000'000, hooks);
    REQUIRE(pool.spares());
    PoolRows rows(pool.spec(), 4);
    REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
    const std::vector<double> actions(8, 0);
    for (const auto late = patience(); resetting == 0;) {
      REQUIRE(EnvironmentPool::Clock::now() < late);
      REQUIRE(pool.step(actions, rows.batch(), patience()));
    }
    const std::int64_t before = rows.episode_steps[3];
    for (int step = 0; step < 500; ++step)
      REQUIRE(pool.step(actions, rows.batch(), patience()));
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(rows.episode_steps[i] == before + 500);
    CHECK(resetting.load() == 1); // never on all threads at once
    gate.open();
  }
}

TEST_CASE(
    "A pool with spares resets each episode of each environment once, with any number of threads") {
  for (const int threads : {1, 2, 4}) {
    std::mutex mutex;
    std::multiset<std::uint64_t> seeds;
    CountingEnvironment::Hooks hooks;
    hooks.reset = [&](std::uint64_t seed) {
      const std::scoped_lock lock(mutex);
      seeds.insert(seed);
    };
    {
      EnvironmentPool pool =
          counting_pool({.environments = 4, .threads = threads, .spares = true}, 7, hooks);
      PoolRows rows(pool.spec(), 4);
      REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
      const std::vector<double> actions(8, 0);
      for (int step = 1; step < 800; ++step) // a hundred episodes
        REQUIRE(pool.step(actions, rows.batch(), patience()));
    }
    for (int environment = 0; environment < 4; ++environment)
      for (std::uint64_t episode = 0; episode < 100; ++episode)
        CHECK(seeds.count(plain_seed(environment, episode)) == 1);
    CHECK(seeds.size() <= 404); // and at most the prepared next one of each
  }
}

TEST_CASE("With one thread, the resets are spread over the episode") {
  std::vector<int> resets(1001, 0);
  int step = 0;
  CountingEnvironment::Hooks hooks;
  hooks.reset = [&](std::uint64_t) { ++resets[static_cast<std::size_t>(step)]; };
  EnvironmentPool pool = counting_pool({.environments = 50, .spares = true}, 1000, hooks);
  PoolRows rows(pool.spec(), 50);
  REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
  CHECK(resets[0] == 50);
  const std::vector<double> actions(100, 0);
  int most = 0, all = 0;
  for (step = 1; step <= 1000; ++step) {
    REQUIRE(pool.step(actions, rows.batch(), patience()));
    most = std::max(most, resets[static_cast<std::size_t>(step)]);
    all += resets[static_cast<std::size_t>(step)];
  }
  CHECK(all == 50);
  CHECK(most <= 2);
}

TEST_CASE("Episodes of any length are played correctly, whether or not a spare is ready in time") {
  for (const std::int64_t length : {1, 2, 3, 50}) {
    EnvironmentPool pool = counting_pool({.environments = 6, .threads = 3}, length);
    PoolRows rows(pool.spec(), 6);
    REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
    const std::vector<double> actions(12, 0);
    for (std::int64_t step = 1; step < 600; ++step) {
      REQUIRE(pool.step(actions, rows.batch(), patience()));
      for (std::size_t i = 0; i < 6; ++i) {
        REQUIRE(rows.episode_steps[i] == step % (length + 1));
        REQUIRE(numbers(rows, i)[0]
                == static_cast<double>(plain_seed(
                    static_cast<int>(i), static_cast<std::uint64_t>(step / (length + 1)))));
      }
    }
  }
}

TEST_CASE(
    "Episodes after seed() depend only on that seed, whatever was played or prepared before") {
  const auto seed_of = [](const PoolRows& rows, std::size_t row) {
    double seed = 0;
    std::memcpy(&seed, rows.observation(row).data(), sizeof seed);
    return seed;
  };
  const auto episodes = [&](EnvironmentPool& pool, int before) {
    PoolRows rows(pool.spec(), 3);
    const std::vector<double> actions(6, 0);
    REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
    for (int step = 0; step < before; ++step)
      REQUIRE(pool.step(actions, rows.batch(), patience()));
    const std::vector<std::int32_t> chosen{2, 0};
    const std::vector<std::uint64_t> seeds{70, 50};
    pool.seed(chosen, seeds);
    std::vector<double> seen;
    REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
    for (int episode = 0; episode < 4; ++episode) {
      seen.push_back(seed_of(rows, 0));
      seen.push_back(seed_of(rows, 2));
      for (int step = 0; step < 6; ++step) // 5 to the end, 1 to restart
        REQUIRE(pool.step(actions, rows.batch(), patience()));
    }
    return seen;
  };
  std::vector<double> expected;
  for (const bool spares : {false, true})
    for (const int before : {0, 3, 29}) {
      EnvironmentPool pool = counting_pool({.environments = 3,
                                            .threads = spares ? 2 : 1,
                                            .seed = static_cast<std::uint64_t>(before),
                                            .spares = spares},
                                           5);
      const auto seen = episodes(pool, before);
      if (expected.empty())
        expected = seen;
      CHECK(seen == expected);
    }
  CHECK(expected[0] == 50);
  CHECK(expected[1] == 70);
  CHECK(std::set<double>(expected.begin(), expected.end()).size() == expected.size());
}

TEST_CASE("seed() refuses environments that do not exist or are in flight") {
  EnvironmentPool pool = counting_pool({.environments = 2}, 5);
  const std::vector<std::int32_t> third{2};
  const std::vector<std::uint64_t> one{1};
  CHECK_THROWS_WITH_AS(pool.seed(third, one), doctest::Contains("does not exist"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(pool.seed({}, one), doctest::Contains("seeds"), std::invalid_argument);
  pool.send_reset(all_of(pool));
  const std::vector<std::int32_t> first{0};
  CHECK_THROWS_WITH_AS(pool.seed(first, one), doctest::Contains("in flight"),
                       std::invalid_argument);
}
