#include <doctest/doctest.h>

#include "env/caster/cuda/batch_caster.hpp"
#include "env/make/make.hpp"
#include "env/render/renderer.hpp"
#include "tests/env/caster/simulations.hpp"

using namespace troupe::env;

namespace {

bool skip() {
  const std::string why = BatchCaster::unavailable();
  if (!why.empty())
    MESSAGE("skipped: " << why);
  return !why.empty();
}

} // namespace

TEST_CASE("The GPU's pictures of 64 environments match the CPU's") {
  if (skip())
    return;
  for (const char* task : {"cartpole_swingup", "cheetah_run", "hopper_hop", "humanoid_run",
                           "quadruped_walk", "walker_walk", "quadruped_escape", "dog_run"}) {
    CAPTURE(task);
    const test::Simulations simulations(task, 64, 2);
    const CastOptions options;
    BatchCaster caster(simulations.caster_model(), 64, options);
    std::vector<std::uint8_t> pictures(caster.bytes());
    for (int repetition = 0; repetition < 2; ++repetition)
      caster.draw(simulations.models(), simulations.states(), pictures);
    CHECK(caster.pictures() != nullptr);
    CHECK(test::differing(pictures, simulations.cast(options), 1) <= .001);
  }
}

TEST_CASE("The GPU draws grey pictures, pictures without effects and odd sizes") {
  if (skip())
    return;
  const test::Simulations simulations("walker_walk", 3);
  for (const CastOptions& options :
       {CastOptions{.grey = true}, CastOptions{.effects = false},
        CastOptions{.height = 33, .width = 57, .layout = PixelLayout::channels_last}}) {
    BatchCaster caster(simulations.caster_model(), 3, options);
    std::vector<std::uint8_t> pictures(caster.bytes());
    caster.draw(simulations.models(), simulations.states(), pictures);
    CHECK(test::differing(pictures, simulations.cast(options), 1) <= .001);
  }
}

TEST_CASE("The caster_cuda renderer of an environment matches its caster renderer") {
  if (skip())
    return;
  const auto environment = make_task("walker_walk");
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  environment->reset(1, observation);
  std::vector<std::uint8_t> pictures[2];
  for (const auto kind : {RendererKind::caster, RendererKind::caster_cuda}) {
    const auto renderer = make_renderer(*environment->physics(), {.renderer = kind});
    auto& picture = pictures[kind == RendererKind::caster ? 0 : 1];
    picture.resize(renderer->bytes());
    renderer->draw(picture);
  }
  CHECK(test::differing(pictures[0], pictures[1], 1) <= .001);
}

TEST_CASE("A GPU that does not exist is refused, and the error names its number") {
  if (skip())
    return;
  const test::Simulations simulations("cartpole_balance", 1);
  CHECK_THROWS_WITH_AS(BatchCaster(simulations.caster_model(), 1, {}, 1, 1000),
                       doctest::Contains("1000"), std::runtime_error);
}
