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

#include "collectives/mesh/fingerprint.hpp"

namespace troupe::collectives {

/// Synchronizes the ranks of one process. In a collective each rank fills its slot and all ranks
/// meet. The last to arrive checks the fingerprints (and does small work for all). Then each rank
/// works on its share, and all meet again. Waits spin for some microseconds, then sleep; every wait
/// ends at the deadline.
class ThreadRendezvous {
public:
  /// A rank's data in contiguous memory, valid until the slot is refilled.
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

  ThreadRendezvous(int size, std::chrono::milliseconds timeout);

  int size() const { return static_cast<int>(slots_.size()); }
  /// The slot is written by its rank before meet(). Other ranks read it in `last` and between
  /// meet() and part().
  Slot& slot(int rank) { return slots_[static_cast<std::size_t>(rank)]; }

  /// Waits for all ranks. The last one checks the fingerprints and calls `last` before any rank
  /// continues. Throws CollectiveError on all ranks if a rank is late or has left, if the calls
  /// differ, if `last` throws it, or if the group is poisoned.
  void meet(int rank, const Fingerprint& call, const std::function<void()>& last);

  /// Waits until all ranks have done their share. Poisoning does not interrupt it, because others
  /// may still write into the caller's memory.
  void part(int rank);

  void poison(const std::string& message);

  /// Marks the rank as gone. Ranks that are waiting for it fail immediately.
  void leave(int rank);

private:
  using Clock = std::chrono::steady_clock;

  void wait(std::unique_lock<std::mutex>& lock, std::uint64_t generation, bool interruptible);
  void pass();
  void poison_locked(const std::string& message);
  void check_locked() const;

  const std::chrono::milliseconds timeout_;
  const bool spins_; // only if every rank can have its own core
  std::vector<Slot> slots_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::uint64_t> generation_{0}; // number of completed meetings
  std::atomic<bool> poisoned_{false};
  std::string message_;
  std::vector<Fingerprint> calls_; // of the ranks that have arrived
  std::vector<char> arrived_;
  std::vector<char> left_;
  int count_ = 0;
  int sleepers_ = 0;
};

} // namespace troupe::collectives
