#include <doctest/doctest.h>

#include <cmath>

#include "env/physics.hpp"
#include "tests/env/pool/counting_environment.hpp"

using namespace troupe::env;

namespace {

CountingEnvironment::Hooks failing_at(int environment, std::int64_t step) {
  CountingEnvironment::Hooks hooks;
  hooks.step = [=](std::uint64_t seed, std::int64_t at) {
    if (seed / 1000 == static_cast<std::uint64_t>(environment) && at == step)
      throw std::runtime_error("the floor gave way");
  };
  return hooks;
}

} // namespace

TEST_CASE("An environment that throws fails alone, reports its error and begins a new episode") {
  for (const int threads : {1, 3})
    for (const bool spares : {false, true}) {
      EnvironmentPool pool = counting_pool(
          {.environments = 4, .threads = threads, .spares = spares, .failure_budget = 1000}, 100,
          failing_at(2, 3));
      PoolRows rows(pool.spec(), 4);
      REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
      CHECK(pool.error(2) == "");
      const std::vector<double> actions(8, .5);
      for (int step = 1; step < 40; ++step) {
        std::fill(rows.observations.begin(), rows.observations.end(), std::byte{0x55});
        REQUIRE(pool.step(actions, rows.batch(), patience()));
        for (const std::size_t i : {0U, 1U, 3U}) {
          REQUIRE(rows.statuses[i] == RowStatus::ok);
          REQUIRE(rows.episode_steps[i] == step);
          REQUIRE(numbers(rows, i)[1] == step);
        }
        const int place = step % 4; // two steps, the failure, the reset
        REQUIRE(rows.statuses[2] == (place == 3 ? RowStatus::failed : RowStatus::ok));
        if (place == 3) {
          CHECK(rows.step_types[2] == StepType::last);
          CHECK(rows.rewards[2] == 0);
          CHECK(numbers(rows, 2) == std::vector<double>{0, 0, 0});
          CHECK(pool.error(2)
                == "environment 2 of the pool (counting), episode " + std::to_string(step / 4)
                       + ", step 3: the floor gave way");
        } else {
          CHECK(numbers(rows, 2)[0] == 2000 + step / 4);
        }
      }
      CHECK(pool.error(1) == "");
    }
}

TEST_CASE("After its failure budget, an environment is out of service, and the others continue") {
  EnvironmentPool pool =
      counting_pool({.environments = 3, .threads = 2, .failure_budget = 2}, 100, failing_at(1, 1));
  PoolRows rows(pool.spec(), 3);
  REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
  const std::vector<double> actions(6, 0);
  int failures = 0;
  for (int step = 1; step < 20; ++step) {
    REQUIRE(pool.step(actions, rows.batch(), patience()));
    failures += rows.statuses[1] == RowStatus::failed ? 1 : 0;
    CHECK(rows.episode_steps[2] == step);
  }
  CHECK(failures == 2);
  CHECK(rows.statuses[1] == RowStatus::out_of_service);
  CHECK_FALSE(pool.in_service(1));
  CHECK(pool.in_service(0));
  CHECK(pool.error(1).find("3 episodes in a row failed, so it is out of service")
        != std::string::npos);
  CHECK_THROWS_WITH_AS(pool.send(std::vector<std::int32_t>{1}, std::vector<double>(2)),
                       doctest::Contains("the floor gave way"), std::invalid_argument);
  pool.send(std::vector<std::int32_t>{0, 2}, std::vector<double>(4));
  PoolRows two(pool.spec(), 2);
  REQUIRE(pool.receive(two.batch(), patience()));
}

TEST_CASE("A reset returns an environment to service with its whole failure budget") {
  for (const bool spares : {false, true}) {
    EnvironmentPool pool =
        counting_pool({.environments = 2, .threads = 2, .spares = spares, .failure_budget = 1}, 100,
                      failing_at(1, 1));
    PoolRows rows(pool.spec(), 2);
    const auto fail_until_out_of_service = [&] {
      for (const RowStatus status : {RowStatus::failed, RowStatus::ok, RowStatus::out_of_service,
                                     RowStatus::out_of_service}) {
        REQUIRE(pool.step(std::vector<double>(4), rows.batch(), patience()));
        REQUIRE(rows.statuses[1] == status);
      }
      CHECK_FALSE(pool.in_service(1));
    };
    REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
    fail_until_out_of_service();
    REQUIRE(pool.reset(std::vector<std::int32_t>{1}, rows.batch(), patience()));
    CHECK(rows.statuses[1] == RowStatus::ok);
    CHECK(rows.step_types[1] == StepType::first);
    CHECK(pool.in_service(1));
    fail_until_out_of_service();
    pool.send_reset(std::vector<std::int32_t>{1});
    PoolRows one(pool.spec(), 1);
    REQUIRE(pool.receive(one.batch(), patience()));
    CHECK(one.statuses[0] == RowStatus::ok);
    CHECK(pool.in_service(1));
  }
}

TEST_CASE("An episode that ends normally restores the failure budget") {
  CountingEnvironment::Hooks hooks;
  hooks.step = [](std::uint64_t seed, std::int64_t) {
    if (seed % 2 == 1) // every other episode
      throw std::runtime_error("bad luck");
  };
  EnvironmentPool pool = counting_pool({.failure_budget = 1}, 2, hooks);
  PoolRows rows(pool.spec(), 1);
  REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
  for (int step = 0; step < 100; ++step)
    REQUIRE(pool.step(std::vector<double>(2), rows.batch(), patience()));
  CHECK(pool.in_service(0));
}

TEST_CASE("A reset that throws fails its row, and the next episode is tried") {
  CountingEnvironment::Hooks hooks;
  hooks.reset = [](std::uint64_t seed) {
    if (seed == 1001)
      throw std::runtime_error("no such floor");
  };
  for (const bool spares : {false, true}) {
    EnvironmentPool pool =
        counting_pool({.environments = 2, .threads = 2, .spares = spares}, 2, hooks);
    PoolRows rows(pool.spec(), 2);
    REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
    const std::vector<double> actions(4, 0);
    REQUIRE(pool.step(actions, rows.batch(), patience()));
    REQUIRE(pool.step(actions, rows.batch(), patience()));
    REQUIRE(pool.step(actions, rows.batch(), patience()));
    CHECK(rows.statuses[0] == RowStatus::ok);
    CHECK(rows.statuses[1] == RowStatus::failed);
    CHECK(pool.error(1)
          == "environment 1 of the pool (counting), episode 1, step 0: no such floor");
    REQUIRE(pool.step(actions, rows.batch(), patience()));
    CHECK(rows.statuses[1] == RowStatus::ok);
    CHECK(rows.step_types[1] == StepType::first);
    CHECK(numbers(rows, 1)[0] == 1002);
  }
}

TEST_CASE("An action that is not finite ends only its own environment's episode") {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    EnvironmentPool pool = counting_pool({.environments = 2, .threads = 2}, 100);
    PoolRows rows(pool.spec(), 2);
    REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
    const std::vector<double> actions{.5, .5, .5, bad};
    REQUIRE(pool.step(actions, rows.batch(), patience()));
    CHECK(rows.statuses[0] == RowStatus::ok);
    CHECK(rows.statuses[1] == RowStatus::failed);
    CHECK(pool.error(1).find("action[1] is ") != std::string::npos);
    CHECK(pool.error(1).find("actions must be finite") != std::string::npos);
  }
}

TEST_CASE(
    "An unstable simulation fails only its own environment, which then begins a new episode") {
  std::vector<Environment*> made;
  EnvironmentPool pool({.environments = 3, .threads = 2, .spares = false}, [&](int) {
    auto environment = make_environment({.task = "cheetah_run"});
    made.push_back(environment.get());
    return environment;
  });
  PoolRows rows(pool.spec(), 3);
  REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
  const std::vector<double> actions(3 * pool.spec().action.size(), 0);
  made[1]->physics()->data().qvel[3] = 1e30;
  REQUIRE(pool.step(actions, rows.batch(), patience()));
  CHECK(rows.statuses[0] == RowStatus::ok);
  CHECK(rows.statuses[1] == RowStatus::failed);
  CHECK(rows.statuses[2] == RowStatus::ok);
  CHECK(pool.error(1).find("simulation of model 'cheetah' is invalid") != std::string::npos);
  REQUIRE(pool.step(actions, rows.batch(), patience()));
  CHECK(rows.statuses[1] == RowStatus::ok);
  CHECK(rows.step_types[1] == StepType::first);
}

TEST_CASE("An environment that throws something other than an exception fails its row") {
  CountingEnvironment::Hooks hooks;
  hooks.step = [](std::uint64_t, std::int64_t at) {
    if (at == 1)
      throw 7;
  };
  EnvironmentPool pool = counting_pool({}, 100, hooks);
  PoolRows rows(pool.spec(), 1);
  REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
  REQUIRE(pool.step(std::vector<double>(2), rows.batch(), patience()));
  CHECK(rows.statuses[0] == RowStatus::failed);
  CHECK(pool.error(0).find("not a std::exception") != std::string::npos);
}
