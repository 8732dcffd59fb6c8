#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace troupe::env {

/// The environments that wait for a step, in order. One thread pushes, any thread takes. It never
/// becomes full: it has room for all environments, and each is in it at most once.
class WorkRing {
public:
  explicit WorkRing(std::size_t environments)
      : mask_(std::bit_ceil(environments) - 1),
        items_(std::make_unique<std::atomic<std::uint32_t>[]>(mask_ + 1)) {}

  /// Other threads see the environment after commit().
  void push(std::uint32_t environment) {
    items_[pushed_++ & mask_].store(environment, std::memory_order_relaxed);
  }
  /// Returns whether there was something to commit.
  bool commit() {
    if (tail_.load(std::memory_order_relaxed) == pushed_)
      return false;
    tail_.store(pushed_, std::memory_order_seq_cst);
    return true;
  }

  bool empty() const {
    return head_.load(std::memory_order_seq_cst) >= tail_.load(std::memory_order_seq_cst);
  }

  std::optional<std::uint32_t> take() {
    std::uint64_t head = head_.load(std::memory_order_acquire);
    while (head < tail_.load(std::memory_order_acquire)) {
      // Read first, then claim: once head_ has advanced, the entry may be overwritten.
      const std::uint32_t environment = items_[head & mask_].load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire))
        return environment;
    }
    return {};
  }

private:
  std::uint64_t mask_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> items_;
  std::uint64_t pushed_ = 0;
  alignas(64) std::atomic<std::uint64_t> head_ = 0;
  alignas(64) std::atomic<std::uint64_t> tail_ = 0;
};

/// The environments whose step is done. One thread pushes, one takes. It never becomes full either.
class DoneRing {
public:
  explicit DoneRing(std::size_t environments)
      : mask_(std::bit_ceil(environments) - 1),
        items_(std::make_unique<std::uint32_t[]>(mask_ + 1)) {}

  void push(std::uint32_t environment) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    items_[tail & mask_] = environment;
    tail_.store(tail + 1, std::memory_order_seq_cst);
  }

  std::size_t size() const {
    return static_cast<std::size_t>(tail_.load(std::memory_order_seq_cst) - head_);
  }
  std::uint32_t take() { return items_[head_++ & mask_]; } // only if size() > 0

private:
  std::uint64_t mask_;
  std::unique_ptr<std::uint32_t[]> items_;
  alignas(64) std::atomic<std::uint64_t> tail_ = 0; // the pusher's
  alignas(64) std::uint64_t head_ = 0;              // the taker's
};

} // namespace troupe::env
