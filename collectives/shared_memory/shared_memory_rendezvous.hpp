#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "collectives/backends/flat_backend.hpp"
#include "collectives/shared_memory/shared_segment.hpp"

namespace troupe::collectives {

/// Synchronises the ranks of one host: a ThreadRendezvous in shared memory. Waits spin for some
/// microseconds if every rank can have a core, then sleep. They end at the deadline, when a rank's
/// process has ended (noticed within kLook) and when the group is poisoned. One thread per rank;
/// poison() any.
///
/// Never uses a size or an address from shared memory: a rank that corrupts it can cause wrong
/// numbers and end calls, no more.
class SharedMemoryRendezvous {
public:
  static constexpr std::chrono::milliseconds kLook{20}; // between checks for dead processes

  SharedMemoryRendezvous(std::shared_ptr<SharedSegment> segment, int rank,
                         std::chrono::milliseconds timeout);
  ~SharedMemoryRendezvous(); // the rank leaves; ranks that wait for it fail now
  SharedMemoryRendezvous(const SharedMemoryRendezvous&) = delete;
  SharedMemoryRendezvous& operator=(const SharedMemoryRendezvous&) = delete;

  /// Waits for all ranks with an equal call. Throws CollectiveError, the same on all ranks: calls
  /// or splits differ, a rank is late, dead or has left, or the group is poisoned.
  void meet(const FlatCall& call);

  /// Waits until all ranks have reached this step of the call. Throws likewise.
  void step();

  /// After meet() with splits: the most bytes any rank sends to any other.
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
  std::uint64_t calls_ = 0;    // of this rank
  std::uint64_t meetings_ = 0; // calls and steps
};

} // namespace troupe::collectives
