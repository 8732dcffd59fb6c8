// Counts what is allocated while a flag is set: malloc and its kin are defined here, in the
// program, and so are called by every library in the process, libmujoco included.
#include <doctest/doctest.h>

#include <cerrno>
#include <cstddef>

#include "env/gym/gym.hpp"
#include "env/make.hpp"

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

TEST_CASE("steps of every task, wrapped for states, allocate nothing") {
#if !TROUPE_COUNTS_ALLOCATIONS
  MESSAGE("skipped: the sanitizer has its own allocator");
#else
  counting = true;
  void* volatile kept = malloc(8);
  counting = false;
  free(kept);
  REQUIRE(allocations >= 1);
  for (const std::string& task : task_names()) {
    CAPTURE(task);
    const auto environment = make_environment({.task = task, .frame_stack = 3, .action_repeat = 2});
    std::vector<std::byte> observation(environment->spec().observation_bytes());
    const std::vector<double> action(environment->spec().action.size(), .7);
    environment->reset(1, observation);
    environment->step(action, observation);
    allocations = 0;
    counting = true;
    for (int i = 0; i < 300; ++i)
      environment->step(action, observation);
    counting = false;
    CHECK(allocations == 0);
  }
#endif
}

TEST_CASE("steps with every wrapper that does not draw allocate nothing") {
#if !TROUPE_COUNTS_ALLOCATIONS
  MESSAGE("skipped: the sanitizer has its own allocator");
#else
  const auto environment = make_environment({.task = "walker_walk",
                                             .frame_stack = 3,
                                             .action_repeat = 2,
                                             .time_limit = 900,
                                             .action_clip = .8,
                                             .action_rescale = true,
                                             .action_noise = .1,
                                             .reward_scale = 2,
                                             .reward_clip = 1,
                                             .observations = {"state", "height"},
                                             .normalization = {.mode = "running"},
                                             .randomization = {.masses = .1, .friction = .1}});
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  const std::vector<double> action(environment->spec().action.size(), .7);
  environment->reset(1, observation);
  allocations = 0;
  counting = true;
  for (int i = 0; i < 300; ++i)
    environment->step(action, observation);
  counting = false;
  CHECK(allocations == 0);
#endif
}

TEST_CASE("steps of Gym's tasks allocate nothing") {
#if !TROUPE_COUNTS_ALLOCATIONS
  MESSAGE("skipped: the sanitizer has its own allocator");
#else
  for (const std::string& task : gym_names()) {
    CAPTURE(task);
    const auto environment = make_gym(task);
    std::vector<std::byte> observation(environment->spec().observation_bytes());
    const std::vector<double> action(environment->spec().action.size(), .3);
    environment->reset(1, observation);
    environment->step(action, observation);
    allocations = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      counting = true;
      const TimeStep step = environment->step(action, observation);
      counting = false;
      if (step.step_type == StepType::last)
        environment->reset(i, observation);
    }
    CHECK(allocations == 0);
  }
#endif
}
