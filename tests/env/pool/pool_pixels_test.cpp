#include <doctest/doctest.h>

#include "tests/env/pool/counting_environment.hpp"

using namespace troupe::env;

TEST_CASE("Pictures from bound threads equal those of a single environment") {
  const EnvironmentConfig config{.task = "cartpole_balance",
                                 .pixels =
                                     PixelOptions{.height = 32, .width = 32, .effects = false},
                                 .frame_stack = 2};
  std::unique_ptr<Environment> alone;
  try {
    alone = make_environment(config);
  } catch (const std::runtime_error& error) {
    MESSAGE("skipped: no OpenGL here: ", error.what());
    return;
  }
  for (const int threads : {1, 2, 3})
    for (const bool spares : {false, true}) {
      PoolOptions options{.environments = 3, .threads = threads, .spares = spares};
      options.episode_seed = plain_seed;
      EnvironmentPool pool(options, config);
      CHECK(pool.bound());
      PoolRows rows(pool.spec(), 3);
      std::vector<std::vector<std::byte>> seen(3);
      const std::vector<std::int32_t> ids = all_of(pool);
      const std::vector<double> actions(3, .3);
      for (int episode = 0; episode < 2; ++episode) {
        REQUIRE(pool.reset(ids, rows.batch(), patience()));
        for (int step = 0; step < 5; ++step)
          REQUIRE(pool.step(actions, rows.batch(), patience()));
        for (std::size_t i = 0; i < 3; ++i) {
          std::vector<std::byte> expected(pool.spec().observation_bytes());
          alone->reset(plain_seed(static_cast<int>(i), static_cast<std::uint64_t>(episode)),
                       expected);
          for (int step = 0; step < 5; ++step)
            alone->step(std::span(actions).first(1), expected);
          CHECK(std::equal(expected.begin(), expected.end(), rows.observation(i).begin()));
        }
      }
    }
}
