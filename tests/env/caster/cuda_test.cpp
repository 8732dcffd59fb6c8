#include <doctest/doctest.h>

#include "env/caster/cuda/batch_caster.hpp"
#include "tests/env/caster/simulations.hpp"

using namespace troupe::env;

namespace {

bool skip() {
  const std::string why = no_batch_caster();
  if (!why.empty())
    MESSAGE("skipped: " << why);
  return !why.empty();
}

} // namespace

TEST_CASE("the GPU draws the processor's pictures of 64 environments at once") {
  if (skip())
    return;
  for (const char* task : {"cartpole_swingup", "cheetah_run", "hopper_hop", "humanoid_run",
                           "quadruped_walk", "walker_walk", "quadruped_escape", "dog_run"}) {
    CAPTURE(task);
    const test::Simulations simulations(task, 64, 2);
    const CastOptions options;
    const auto caster = make_batch_caster(simulations.caster_model(), 64, options);
    std::vector<std::uint8_t> pictures(caster->bytes());
    for (int repetition = 0; repetition < 2; ++repetition)
      caster->draw(simulations.models(), simulations.states(), pictures);
    CHECK(caster->pictures() != nullptr);
    CHECK(test::differing(pictures, simulations.cast(options), 1) <= .001);
  }
}

TEST_CASE("the GPU draws grey, without effects and in odd sizes") {
  if (skip())
    return;
  const test::Simulations simulations("walker_walk", 3);
  for (const CastOptions& options :
       {CastOptions{.grey = true}, CastOptions{.effects = false},
        CastOptions{.height = 33, .width = 57, .layout = PixelLayout::channels_last}}) {
    const auto caster = make_batch_caster(simulations.caster_model(), 3, options);
    std::vector<std::uint8_t> pictures(caster->bytes());
    caster->draw(simulations.models(), simulations.states(), pictures);
    CHECK(test::differing(pictures, simulations.cast(options), 1) <= .001);
  }
}

TEST_CASE("a GPU that is not there is refused with its number") {
  if (skip())
    return;
  const test::Simulations simulations("cartpole_balance", 1);
  CHECK_THROWS_WITH_AS(make_batch_caster(simulations.caster_model(), 1, {}, 1000),
                       doctest::Contains("1000"), std::runtime_error);
}
