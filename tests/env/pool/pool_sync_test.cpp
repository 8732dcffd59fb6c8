#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <set>

#include "env/random.hpp"
#include "tests/env/pool/counting_environment.hpp"

using namespace troupe::env;

namespace {

struct Setting {
  const char* what;
  int threads;
  bool caller_plays;
  PoolThreads binding;
  bool spares;
};

const Setting kSettings[] = {
    {"the caller alone", 1, true, PoolThreads::shared, false},
    {"the caller alone, with spares", 1, true, PoolThreads::shared, true},
    {"two threads, shared", 2, true, PoolThreads::shared, true},
    {"two threads, bound", 2, true, PoolThreads::bound, true},
    {"three threads without the caller, shared", 3, false, PoolThreads::shared, true},
    {"three threads without the caller, bound", 3, false, PoolThreads::bound, false},
};

double action_of(int environment, int step, std::size_t k) {
  return Random(static_cast<std::uint64_t>(environment * 100'000 + step * 10) + k).uniform(-1, 1);
}

/// Plays the pool and, separately, each environment alone with the same seeds and actions.
void check_equals_playing_alone(const PoolOptions& options, const std::string& task, int steps) {
  const EnvironmentConfig config{.task = task};
  PoolOptions seeded = options;
  seeded.episode_seed = plain_seed;
  EnvironmentPool pool(seeded, config);
  PoolRows rows(pool.spec(), static_cast<std::size_t>(options.environments));
  REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
  std::vector<std::unique_ptr<Environment>> alone;
  std::vector<std::uint64_t> episodes;
  std::vector<TimeStep> last(rows.rewards.size());
  std::vector<std::byte> expected(pool.spec().observation_bytes());
  for (int i = 0; i < options.environments; ++i) {
    alone.push_back(make_environment(config));
    alone.back()->reset(plain_seed(i, 0), expected);
    episodes.push_back(1);
    CHECK(std::equal(expected.begin(), expected.end(),
                     rows.observation(static_cast<std::size_t>(i)).begin()));
  }
  const std::size_t size = pool.spec().action.size();
  std::vector<double> actions(rows.rewards.size() * size);
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < rows.rewards.size(); ++i)
      for (std::size_t k = 0; k < size; ++k)
        actions[i * size + k] = action_of(static_cast<int>(i), step, k);
    REQUIRE(pool.step(actions, rows.batch(), patience()));
    for (std::size_t i = 0; i < rows.rewards.size(); ++i) {
      const bool ended = last[i].step_type == StepType::last;
      last[i] = ended ? alone[i]->reset(plain_seed(static_cast<int>(i), episodes[i]++), expected)
                      : alone[i]->step(std::span(actions).subspan(i * size, size), expected);
      REQUIRE(rows.step_types[i] == last[i].step_type);
      REQUIRE(rows.rewards[i] == last[i].reward);
      REQUIRE(rows.discounts[i] == last[i].discount);
      REQUIRE(std::equal(expected.begin(), expected.end(), rows.observation(i).begin()));
    }
  }
}

} // namespace

TEST_CASE("Each environment plays as it does alone, bit for bit, with any number of threads") {
  for (const Setting& setting : kSettings) {
    CAPTURE(setting.what);
    check_equals_playing_alone({.environments = 5,
                                .threads = setting.threads,
                                .caller_plays = setting.caller_plays,
                                .binding = setting.binding,
                                .spares = setting.spares},
                               "cheetah_run", 1100); // beyond the end of the first episode
  }
}

TEST_CASE(
    "A row has its environment, episode length and return, and a first step follows a last step") {
  for (const Setting& setting : kSettings) {
    CAPTURE(setting.what);
    EnvironmentPool pool = counting_pool({.environments = 7,
                                          .threads = setting.threads,
                                          .caller_plays = setting.caller_plays,
                                          .binding = setting.binding,
                                          .spares = setting.spares},
                                         3);
    CHECK(pool.bound() == (setting.binding == PoolThreads::bound));
    PoolRows rows(pool.spec(), 7);
    REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
    const std::vector<double> actions(14, .5);
    for (int step = 1; step < 400; ++step) {
      REQUIRE(pool.step(actions, rows.batch(), patience()));
      const int in_episode = step % 4; // three steps and a reset
      for (std::size_t i = 0; i < 7; ++i) {
        REQUIRE(rows.environments[i] == static_cast<int>(i));
        REQUIRE(rows.statuses[i] == RowStatus::ok);
        REQUIRE(rows.episode_steps[i] == in_episode);
        REQUIRE(rows.episode_returns[i] == .5 * in_episode);
        REQUIRE(rows.discounts[i] == 1);
        REQUIRE(rows.step_types[i]
                == (in_episode == 0   ? StepType::first
                    : in_episode == 3 ? StepType::last
                                      : StepType::mid));
        const auto seed = plain_seed(static_cast<int>(i), static_cast<std::uint64_t>(step / 4));
        REQUIRE(
            numbers(rows, i)
            == std::vector<double>{static_cast<double>(seed), 1. * in_episode, 1. * in_episode});
      }
    }
  }
}

TEST_CASE(
    "A reset in the middle of an episode begins the next one in the named environments only") {
  for (const bool spares : {false, true}) {
    EnvironmentPool pool = counting_pool({.environments = 3, .threads = 2, .spares = spares}, 100);
    PoolRows rows(pool.spec(), 3);
    REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
    const std::vector<float> actions(6, 0);
    REQUIRE(pool.step(actions, rows.batch(), patience()));
    REQUIRE(pool.reset(std::vector<std::int32_t>{1}, rows.batch(), patience()));
    CHECK(numbers(rows, 0) == std::vector<double>{0, 1, 0});
    CHECK(numbers(rows, 1) == std::vector<double>{1001, 0, 0});
    CHECK(rows.step_types[1] == StepType::first);
    REQUIRE(pool.step(actions, rows.batch(), patience()));
    CHECK(numbers(rows, 0) == std::vector<double>{0, 2, 0});
    CHECK(numbers(rows, 1) == std::vector<double>{1001, 1, 0});
  }
}

TEST_CASE("A bound environment is always played by the same thread") {
  std::mutex mutex;
  std::map<std::uint64_t, std::set<std::thread::id>> threads; // by environment
  CountingEnvironment::Hooks hooks;
  hooks.reset = [&](std::uint64_t seed) {
    const std::scoped_lock lock(mutex);
    threads[seed / 1000].insert(std::this_thread::get_id());
  };
  hooks.step = [&](std::uint64_t seed, std::int64_t) { hooks.reset(seed); };
  for (const bool caller_plays : {true, false}) {
    threads.clear();
    EnvironmentPool pool = counting_pool({.environments = 6,
                                          .threads = 3,
                                          .caller_plays = caller_plays,
                                          .binding = PoolThreads::bound,
                                          .spares = true},
                                         5, hooks);
    PoolRows rows(pool.spec(), 6);
    REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
    const std::vector<double> actions(12, 0);
    for (int step = 0; step < 100; ++step)
      REQUIRE(pool.step(actions, rows.batch(), patience()));
    std::set<std::thread::id> all;
    const std::scoped_lock lock(mutex); // a spare may be in preparation on another thread
    for (const auto& [environment, ids] : threads) {
      CHECK(ids.size() == 1);
      all.insert(ids.begin(), ids.end());
    }
    CHECK(all.size() == 3);
    CHECK(all.contains(std::this_thread::get_id()) == caller_plays);
  }
}

TEST_CASE("A step that misses its deadline is finished later") {
  Gate gate;
  CountingEnvironment::Hooks hooks;
  hooks.step = [&](std::uint64_t, std::int64_t) { gate.pass(); };
  EnvironmentPool pool =
      counting_pool({.environments = 2, .threads = 2, .caller_plays = false}, 100, hooks);
  PoolRows rows(pool.spec(), 2);
  REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
  const std::vector<double> actions(4, 0);
  CHECK_FALSE(pool.step(actions, rows.batch(), no_time()));
  CHECK(pool.in_flight() == 2);
  CHECK_FALSE(pool.finish(EnvironmentPool::Clock::now() + std::chrono::milliseconds(1)));
  CHECK_THROWS_WITH_AS(pool.step(actions, rows.batch(), patience()), doctest::Contains("finish()"),
                       std::invalid_argument);
  CHECK_THROWS_AS(pool.receive(rows.batch(), patience()), std::invalid_argument);
  CHECK_THROWS_AS(pool.send_reset(std::vector<std::int32_t>{0}), std::invalid_argument);
  gate.open();
  REQUIRE(pool.finish(patience()));
  CHECK(numbers(rows, 1) == std::vector<double>{1000, 1, 0});
  CHECK(pool.in_flight() == 0);
}

TEST_CASE("Invalid options and sizes of a pool are refused, and the error names them") {
  CHECK_THROWS_WITH_AS(counting_pool({.environments = 0}, 5),
                       doctest::Contains("environments of the pool is 0"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(counting_pool({.environments = 2, .threads = 3}, 5),
                       doctest::Contains("threads of the pool is 3; it must be from 1 to 2"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(counting_pool({.failure_budget = -1}, 5),
                       doctest::Contains("failure_budget"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      EnvironmentPool(
          {.environments = 2},
          [](int i) { return make_environment({.task = i == 0 ? "cheetah_run" : "walker_walk"}); }),
      doctest::Contains("walker_walk"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(EnvironmentPool({}, [](int) { return nullptr; }),
                       doctest::Contains("none was made"), std::invalid_argument);

  EnvironmentPool pool = counting_pool({.environments = 2}, 5);
  PoolRows rows(pool.spec(), 2);
  PoolRows small(pool.spec(), 1);
  REQUIRE(pool.reset(all_of(pool), rows.batch(), patience()));
  const std::vector<double> actions(4, 0);
  CHECK_THROWS_WITH_AS(pool.step(std::vector<double>(3), rows.batch(), patience()),
                       doctest::Contains("actions has 3 entries; it needs 4"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(pool.step(actions, small.batch(), patience()),
                       doctest::Contains("rewards has 1 entries; it needs 2"),
                       std::invalid_argument);
  PoolBatch torn = rows.batch();
  torn.observations = torn.observations.first(3);
  CHECK_THROWS_WITH_AS(pool.step(actions, torn, patience()), doctest::Contains("observations"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(pool.reset(std::vector<std::int32_t>{1, 1}, rows.batch(), patience()),
                       doctest::Contains("name it once"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(pool.reset(std::vector<std::int32_t>{0, 2}, rows.batch(), patience()),
                       doctest::Contains("environment 2 of the pool does not exist"),
                       std::invalid_argument);
  REQUIRE(pool.step(actions, rows.batch(), patience())); // the pool is still usable
  CHECK(numbers(rows, 0) == std::vector<double>{0, 1, 0});
}
