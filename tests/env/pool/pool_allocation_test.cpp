// Counts what any thread allocates while a flag is set: malloc and its kin are defined here, in the
// program, and so are called by every library in the process, libmujoco included.
#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

#include "tests/env/pool/counting_environment.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TROUPE_COUNTS_ALLOCATIONS 0
#else
#define TROUPE_COUNTS_ALLOCATIONS 1
#endif

namespace {
[[maybe_unused]] std::atomic<bool> counting = false;
[[maybe_unused]] std::atomic<int> allocations = 0;
} // namespace

#if TROUPE_COUNTS_ALLOCATIONS
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) {
  allocations += counting ? 1 : 0;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  allocations += counting ? 1 : 0;
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  allocations += counting ? 1 : 0;
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  allocations += counting ? 1 : 0;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  *out = aligned_alloc(alignment, size);
  return *out != nullptr ? 0 : ENOMEM;
}
}
#endif

using namespace troupe::env;

TEST_CASE("steps, ends of episodes and resets of a pool allocate nothing, on any thread") {
#if !TROUPE_COUNTS_ALLOCATIONS
  MESSAGE("skipped: the sanitizer has its own allocator");
#else
  counting = true;
  void* volatile kept = malloc(8);
  counting = false;
  free(kept);
  REQUIRE(allocations >= 1);
  for (const auto binding : {PoolThreads::shared, PoolThreads::bound})
    for (const int threads : {1, 2, 3}) {
      EnvironmentPool pool({.environments = 6, .threads = threads, .binding = binding},
                           {.task = "cheetah_run", .frame_stack = 3});
      PoolRows all(pool.spec(), 6), some(pool.spec(), 2);
      REQUIRE(pool.reset(all_of(pool), all.batch(), patience()));
      const std::vector<float> actions(6 * pool.spec().action.size(), .7F);
      const auto few = std::span(actions).first(2 * pool.spec().action.size());
      REQUIRE(pool.step(actions, all.batch(), patience()));
      allocations = 0;
      counting = true;
      bool good = true;
      for (int i = 0; i < 1100; ++i)
        good &= pool.step(actions, all.batch(), patience());
      const auto ids = std::span(all.environments);
      pool.send(ids, actions);
      for (int i = 0; i < 3300; ++i) {
        good &= pool.receive(some.batch(), patience());
        pool.send(some.environments, few);
      }
      good &= pool.receive(all.batch(), patience());
      counting = false;
      CHECK(good);
      CHECK(allocations == 0);
    }
#endif
}
