#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "collectives/backends/flat_backend.hpp"
#include "collectives/shared_memory/shared_segment.hpp"

namespace troupe::collectives {

/// Synchronizes the ranks of one host, like a ThreadRendezvous in shared memory. Waits spin for
/// some microseconds if every rank can have a core, then sleep. A wait ends at the deadline, when a
/// rank's process ends (noticed within kLook) or when the group is poisoned. One thread per rank
/// may use it; any thread may call poison().
///
/// It never uses a value from shared memory as a size or an address. A rank that corrupts the
/// memory can cause wrong numbers and failed calls, but no more.
class SharedMemoryRendezvous {
public:
  static constexpr std::chrono::milliseconds kLook{20}; // between checks for dead processes

  SharedMemoryRendezvous(std::shared_ptr<SharedSegment> segment, int rank,
                         std::chrono::milliseconds timeout);
  ~SharedMemoryRendezvous(); // the rank leaves; ranks waiting for it fail immediately
  SharedMemoryRendezvous(const SharedMemoryRendezvous&) = delete;
  SharedMemoryRendezvous& operator=(const SharedMemoryRendezvous&) = delete;

  /// Waits until all ranks have made an equal call. Throws the same CollectiveError on all ranks if
  /// the calls or splits differ, a rank is late, has died or has left, or the group is poisoned.
  void meet(const FlatCall& call);

  /// Waits until all ranks have reached this step of the call. Throws like meet().
  void step();

  /// Returns the largest number of bytes that any rank sends to another. Valid after meet() with
  /// splits.
  std::size_t largest_split() const;

  void poison(const std::string& message);

private:
  using Clock = std::chrono::steady_clock;

  SharedRank& rank(int rank) const {
    return segment_->header().rank[static_cast<std::size_t>(rank)];
  }
  SharedRank::Call& call_of(int of) const { return rank(of).calls[calls_ % 2]; }
  void arrive(bool compare);
  void wait();
  bool spin(std::uint64_t meeting) const;
  void look(Clock::time_point deadline, bool silent);
  void compare_calls();
  void check();
  void ring();
  [[noreturn]] void fail(const std::string& message);

  const std::shared_ptr<SharedSegment> segment_;
  SharedHeader& header_;
  const int rank_;
  const std::chrono::milliseconds timeout_;
  const bool spins_;
  std::uint64_t calls_ = 0;    // number of this rank's calls
  std::uint64_t meetings_ = 0; // calls and steps
};

} // namespace troupe::collectives
