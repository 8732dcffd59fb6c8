#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "collectives/mesh/fingerprint.hpp"
#include "collectives/mesh/socket.hpp"

namespace troupe::collectives {

constexpr int kMostSharedRanks = 64;

/// A rank's messages to the others, in memory that all ranks can write. Call data exist twice, so a
/// rank that is one call ahead does not overwrite what others are still reading.
struct SharedRank {
  struct Call {
    Fingerprint fingerprint;
    std::array<std::uint64_t, kMostSharedRanks> in_splits; // all_to_all: bytes to each rank
    std::array<std::uint64_t, kMostSharedRanks> out_splits;
  };

  alignas(64) std::atomic<std::uint64_t> arrived; // number of meetings that it has joined
  std::atomic<std::uint32_t> left;                // 1: the rank has left
  alignas(64) std::array<Call, 2> calls;          // [call % 2]
};

/// The beginning of the shared memory, used for synchronization.
struct SharedHeader {
  static constexpr std::uint64_t kMagic = 0x3168736570757254; // "Trupesh1"

  std::uint64_t magic;
  std::uint32_t ranks;
  std::uint64_t stage_bytes;
  alignas(64) std::atomic<std::uint64_t> arrivals;   // total over ranks and meetings
  alignas(64) std::atomic<std::uint64_t> generation; // number of completed meetings
  alignas(64) std::atomic<std::uint32_t> bell;       // a futex that wakes sleepers
  std::atomic<std::uint32_t> sleepers;
  alignas(64) std::atomic<std::uint32_t> poison; // 0: none; 1: writing the reason; 2: reason is set
  std::array<char, 2044> reason;
  alignas(64) std::array<SharedRank, kMostSharedRanks> rank;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Memory that all ranks of a group map, on one host and as one user. It is an unnamed file whose
/// size is sealed, and it vanishes with its processes, however they end. It holds a SharedHeader
/// and, for each rank, space for small data and two stages for large data. It also knows which
/// ranks' processes are alive: each process holds one end of a pipe.
class SharedSegment {
public:
  static constexpr std::size_t kSmallBytes = 32 * 1024;   // of one rank, in a call that meets once
  static constexpr std::size_t kStageBytes = 1024 * 1024; // of one rank; there are two

  /// Makes a segment for ranks that are threads of this process and share the returned object.
  static std::shared_ptr<SharedSegment> of_threads(int size);

  /// Joins as rank `rank` of `size` processes, which meet through `store`. Throws
  /// std::runtime_error naming the rank that is missing, belongs to another user or runs on another
  /// host.
  static std::shared_ptr<SharedSegment> join(c10d::Store& store, int rank, int size,
                                             std::chrono::milliseconds timeout);

  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  int size() const { return size_; }
  SharedHeader& header() { return *reinterpret_cast<SharedHeader*>(bytes_); }
  /// Returns one of the two areas of kSmallBytes that `rank` writes.
  std::byte* small(int rank, std::size_t which) const;
  /// Returns one of the two stages of kStageBytes that `rank` writes.
  std::byte* stage(int rank, std::size_t which) const;

  /// Returns the lowest rank whose process has ended or released its segment, or -1.
  int dead() const;

private:
  SharedSegment(int size, int file);
  static std::shared_ptr<SharedSegment> serve(c10d::Store& store, int size, Deadline deadline);
  static std::shared_ptr<SharedSegment> come(c10d::Store& store, int rank, int size,
                                             Deadline deadline);
  void start();

  const int size_;
  std::size_t length_ = 0;
  std::byte* bytes_ = nullptr;
  Socket alive_;              // this process's own end of its pipe
  std::vector<Socket> lives_; // [rank]; the other end closes when the rank's process ends
};

} // namespace troupe::collectives
