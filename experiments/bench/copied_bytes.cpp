#include "experiments/bench/copied_bytes.hpp"

#include <atomic>

namespace {

constexpr std::size_t kLeastCopy = 1024;
std::atomic<bool> counting = false;
std::atomic<std::int64_t> counted = 0;

void count_copy(std::size_t bytes) {
  if (bytes >= kLeastCopy && counting.load(std::memory_order_relaxed))
    counted += static_cast<std::int64_t>(bytes);
}

} // namespace

// The linker calls these instead of the C library's functions.
extern "C" {
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __real_memmove(void* to, const void* from, std::size_t bytes);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  count_copy(bytes);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  count_copy(bytes);
  return __real_memmove(to, from, bytes);
}
}

namespace troupe::experiments {

std::int64_t copied_bytes(const std::function<void()>& work) {
  counted = 0;
  counting = true;
  work();
  counting = false;
  return counted;
}

} // namespace troupe::experiments
