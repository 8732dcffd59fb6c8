// Counts what is allocated while a flag is set: malloc is defined here, for all libraries.
#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include "env/caster/ray_caster.hpp"
#include "env/make.hpp"
#include "env/physics.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TROUPE_COUNTS_ALLOCATIONS 0
#else
#define TROUPE_COUNTS_ALLOCATIONS 1
#endif

namespace {
[[maybe_unused]] thread_local bool counting = false;
[[maybe_unused]] thread_local int allocations = 0;
} // namespace

#if TROUPE_COUNTS_ALLOCATIONS
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t size) {
  allocations += counting ? 1 : 0;
  return __libc_malloc(size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  allocations += counting ? 1 : 0;
  return __libc_memalign(alignment, size);
}
}
#endif

using namespace troupe::env;

TEST_CASE("pictures of states like those drawn before allocate nothing") {
#if !TROUPE_COUNTS_ALLOCATIONS
  MESSAGE("skipped: the sanitizer has its own allocator");
#else
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
    allocations = 0;
    counting = true;
    draw_all();
    counting = false;
    CHECK(allocations == 0);
  }
#endif
}
