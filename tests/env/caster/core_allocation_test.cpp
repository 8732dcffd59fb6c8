#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include "env/caster/ray_caster.hpp"
#include "env/make/make.hpp"
#include "env/physics.hpp"
#include "tests/allocation_counter.hpp"

using namespace troupe;
using namespace troupe::env;

TEST_CASE("Drawing the same state again allocates no memory") {
  if (!counts_allocations())
    return;
  for (const char* task : {"humanoid_run", "quadruped_escape", "dog_run", "reacher_easy"}) {
    CAPTURE(task);
    const auto environment = make_task(task);
    std::vector<std::byte> observation(environment->spec().observation_bytes());
    environment->reset(1, observation);
    const Physics& physics = *environment->physics();
    RayCaster caster(caster_model(physics.compiled()), {});
    std::vector<std::uint8_t> picture(caster.bytes());
    std::vector<float> metres(84 * 84);
    std::vector<std::int32_t> objects(2 * 84 * 84);
    const auto draw_all = [&] {
      caster.draw(physics.model(), physics.data(), picture);
      caster.draw_depth(physics.model(), physics.data(), metres);
      caster.draw_segmentation(physics.model(), physics.data(), objects);
    };
    draw_all();
    CHECK(allocations_of([&] { draw_all(); }) == 0);
  }
}
