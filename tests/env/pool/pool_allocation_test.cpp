#include <doctest/doctest.h>

#include "tests/allocation_counter.hpp"
#include "tests/env/pool/counting_environment.hpp"

using namespace troupe;
using namespace troupe::env;

TEST_CASE("Steps, episode ends and resets of a pool allocate no memory on any thread") {
  if (!counts_allocations())
    return;
  for (const auto binding : {PoolThreads::shared, PoolThreads::bound})
    for (const int threads : {1, 2, 3}) {
      EnvironmentPool pool({.environments = 6, .threads = threads, .binding = binding},
                           {.task = "cheetah_run", .frame_stack = 3});
      PoolRows all(pool.spec(), 6), some(pool.spec(), 2);
      REQUIRE(pool.reset(all_of(pool), all.batch(), patience()));
      const std::vector<float> actions(6 * pool.spec().action.size(), .7F);
      const auto few = std::span(actions).first(2 * pool.spec().action.size());
      REQUIRE(pool.step(actions, all.batch(), patience()));
      bool good = true;
      const int allocations = allocations_of(
          [&] {
            for (int i = 0; i < 1100; ++i)
              good &= pool.step(actions, all.batch(), patience());
            const auto ids = std::span(all.environments);
            pool.send(ids, actions);
            for (int i = 0; i < 3300; ++i) {
              good &= pool.receive(some.batch(), patience());
              pool.send(some.environments, few);
            }
            good &= pool.receive(all.batch(), patience());
          },
          allocation_counter::Threads::all);
      CHECK(good);
      CHECK(allocations == 0);
    }
}
