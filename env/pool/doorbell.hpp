#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace troupe::env {

/// One thread sleeps at the doorbell until another rings it. Ringing costs one load while no thread
/// sleeps.
///
///   sleeper:  key = bell.announce();           ringer:  work.store(…, seq_cst);
///             if (work.load(seq_cst))                   bell.ring();
///               bell.retract();
///             else bell.sleep(key, deadline);
///
/// No ring is lost if both sides access the work with std::memory_order_seq_cst. There may be one
/// sleeper and any number of ringers. sleep() may return early, so check the work again.
class Doorbell {
public:
  using Clock = std::chrono::steady_clock;

  std::uint32_t announce() {
    // Read the number first: a ring that resets `sleeping_` must change the number. Otherwise
    // sleep() would miss that ring, and later rings would find no sleeper.
    const std::uint32_t key = rings_.load(std::memory_order_seq_cst);
    sleeping_.store(true, std::memory_order_seq_cst);
    return key;
  }
  void retract() { sleeping_.store(false, std::memory_order_relaxed); }
  void sleep(std::uint32_t key, Clock::time_point deadline);
  /// Returns whether it woke a sleeper: there may be none, or another ringer may be first.
  bool ring() { return sleeping_.load(std::memory_order_seq_cst) && wake(); }

private:
  bool wake();

  alignas(64) std::atomic<bool> sleeping_ = false;
  std::atomic<std::uint32_t> rings_ = 0;
};

/// Pauses the processor between two reads of memory that another thread will write.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

} // namespace troupe::env
