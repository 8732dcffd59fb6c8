#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "collectives/fingerprint.hpp"

namespace troupe::collectives {

/// Where the ranks of one process meet. A collective is: each rank fills its slot, all meet, the
/// last to come checks the fingerprints (and does small work for all), then each works on its
/// share and all meet again. Waits spin for some microseconds, then sleep; every wait ends at the
/// deadline.
class Meeting {
public:
  /// What a rank brings: flat, contiguous memory, which lives until the slot is refilled.
  struct Slot {
    at::Tensor input;
    at::Tensor output;
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    std::size_t in_bytes = 0;
    std::size_t out_bytes = 0;
    std::span<const std::size_t> in_splits; // bytes to each rank; all_to_all only
    std::span<const std::size_t> out_splits;
  };

  Meeting(int size, std::chrono::milliseconds timeout);

  int size() const { return static_cast<int>(slots_.size()); }
  /// Written by its rank before meet(); read by the others in `last` and between meet() and part().
  Slot& slot(int rank) { return slots_[static_cast<std::size_t>(rank)]; }

  /// Waits for all ranks. The last one checks the fingerprints and calls `last` before anyone goes
  /// on. Throws CollectiveError on all ranks when one of them is late or left, when the calls
  /// differ, when `last` throws it, or once poisoned.
  void meet(int rank, const Fingerprint& call, const std::function<void()>& last);

  /// Waits until all ranks have done their share. Not interrupted by poison, for others may still
  /// be writing into the caller's memory.
  void part(int rank);

  void poison(const std::string& message);

  /// The rank comes no more; whoever waits for it fails now.
  void leave(int rank);

private:
  using Clock = std::chrono::steady_clock;

  void wait(std::unique_lock<std::mutex>& lock, std::uint64_t generation, bool interruptible);
  void pass();
  void poison_locked(const std::string& message);
  void check_locked() const;

  const std::chrono::milliseconds timeout_;
  const bool spins_; // only where every rank can have a core
  std::vector<Slot> slots_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::uint64_t> generation_{0}; // meetings that all ranks have come to
  std::atomic<bool> poisoned_{false};
  std::string message_;
  std::vector<Fingerprint> calls_; // of those that have arrived
  std::vector<char> arrived_;
  std::vector<char> left_;
  int count_ = 0;
  int sleepers_ = 0;
};

} // namespace troupe::collectives
