#pragma once

// Counts allocations and finds the largest while a flag is set. Defines malloc and its relatives in
// the program, so that every library of the process calls them, libmujoco included. Only one source
// file of a test program may include it. Sanitizers bring their own allocator; nothing is counted
// then.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include <doctest/doctest.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TROUPE_COUNTS_ALLOCATIONS 0
#else
#define TROUPE_COUNTS_ALLOCATIONS 1
#endif

namespace troupe::allocation_counter {

enum class Threads { this_one, all };

inline thread_local bool counts_here = false;
inline std::atomic<bool> counts_everywhere = false;
inline std::atomic<int> allocations = 0;
inline std::atomic<std::size_t> most_bytes = 0; // of one allocation

inline void note(std::size_t bytes) {
  if (!counts_here && !counts_everywhere.load(std::memory_order_relaxed))
    return;
  allocations.fetch_add(1, std::memory_order_relaxed);
  std::size_t most = most_bytes.load(std::memory_order_relaxed);
  while (bytes > most
         && !most_bytes.compare_exchange_weak(most, bytes, std::memory_order_relaxed)) {
  }
}

} // namespace troupe::allocation_counter

#if TROUPE_COUNTS_ALLOCATIONS
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) {
  troupe::allocation_counter::note(size);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  troupe::allocation_counter::note(count * size);
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  troupe::allocation_counter::note(size);
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  troupe::allocation_counter::note(size);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  *out = aligned_alloc(alignment, size);
  return *out != nullptr ? 0 : ENOMEM;
}
}
#endif

namespace troupe {

/// Returns how often `body` allocates, on the calling thread or on any.
template <typename Body>
int allocations_of(Body&& body,
                   allocation_counter::Threads threads = allocation_counter::Threads::this_one) {
  using namespace allocation_counter;
  const auto count = [threads](bool on) {
    if (threads == Threads::all)
      counts_everywhere = on;
    else
      counts_here = on;
  };
  allocations = 0;
  count(true);
  body();
  count(false);
  return allocations;
}

/// Returns the size in bytes of the largest allocation that `body` makes on the calling thread.
template <typename Body>
std::size_t largest_allocation_of(Body&& body) {
  allocation_counter::most_bytes = 0;
  allocations_of(body);
  return allocation_counter::most_bytes;
}

/// Returns false, with a message, if nothing can be counted. Fails if counting does not work.
inline bool counts_allocations() {
#if TROUPE_COUNTS_ALLOCATIONS
  void* volatile kept = nullptr;
  REQUIRE(allocations_of([&] { kept = std::malloc(8); }) == 1);
  std::free(kept);
  return true;
#else
  MESSAGE("skipped: the sanitizer has its own allocator");
  return false;
#endif
}

} // namespace troupe
