#include "env/pool/doorbell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

namespace troupe::env {

namespace {

/// std::atomic::wait() has no deadline, hence the futex system call.
std::uint32_t* word(std::atomic<std::uint32_t>& value) {
  static_assert(sizeof value == sizeof(std::uint32_t));
  return reinterpret_cast<std::uint32_t*>(&value);
}

} // namespace

void Doorbell::sleep(std::uint32_t key, Clock::time_point deadline) {
  const auto left = std::clamp<Clock::duration>(deadline - Clock::now(), Clock::duration::zero(),
                                                std::chrono::hours(1));
  const auto nanoseconds = std::chrono::nanoseconds(left).count();
  timespec timeout{};
  timeout.tv_sec = static_cast<std::time_t>(nanoseconds / 1'000'000'000);
  timeout.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
  syscall(SYS_futex, word(rings_), FUTEX_WAIT_PRIVATE, key, &timeout, nullptr, 0);
  retract();
}

bool Doorbell::wake() {
  if (!sleeping_.exchange(false, std::memory_order_seq_cst))
    return false; // another ringer was first
  rings_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, word(rings_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  return true;
}

} // namespace troupe::env
