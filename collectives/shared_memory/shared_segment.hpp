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

/// A rank's messages to the others, in memory that all write. Data of a call exist twice, so that a
/// rank one call ahead does not overwrite what others still read.
struct SharedRank {
  struct Call {
    Fingerprint fingerprint;
    std::array<std::uint64_t, kMostSharedRanks> in_splits; // all_to_all: bytes to each rank
    std::array<std::uint64_t, kMostSharedRanks> out_splits;
  };

  alignas(64) std::atomic<std::uint64_t> arrived; // meetings in which it has arrived
  std::atomic<std::uint32_t> left;                // 1: it has left
  alignas(64) std::array<Call, 2> calls;          // [call % 2]
};

/// The beginning of the shared memory, for synchronisation.
struct SharedHeader {
  static constexpr std::uint64_t kMagic = 0x3168736570757254; // "Trupesh1"

  std::uint64_t magic;
  std::uint32_t ranks;
  std::uint64_t stage_bytes;
  alignas(64) std::atomic<std::uint64_t> arrivals;   // of all ranks to all meetings
  alignas(64) std::atomic<std::uint64_t> generation; // meetings in which all ranks have arrived
  alignas(64) std::atomic<std::uint32_t> bell;       // a futex: rung when a sleeper should look
  std::atomic<std::uint32_t> sleepers;
  alignas(
      64) std::atomic<std::uint32_t> poison; // 0; 1: the reason is being written; 2: it is there
  std::array<char, 2044> reason;
  alignas(64) std::array<SharedRank, kMostSharedRanks> rank;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Memory that all ranks of a group map, on one host and of one user: a file without a name whose
/// size is sealed. It vanishes with its processes, however they end. It holds
/// a SharedHeader and, for each rank, room for small data and two stages for large ones. Also knows
/// which ranks' processes live: each holds one end of a pipe.
class SharedSegment {
public:
  static constexpr std::size_t kSmallBytes = 32 * 1024;   // of one rank, in a call with one meeting
  static constexpr std::size_t kStageBytes = 1024 * 1024; // of one rank; twice

  /// For ranks that are threads of this process, and share this object.
  static std::shared_ptr<SharedSegment> of_threads(int size);

  /// Rank `rank` of `size` processes, which meet through `store`. Throws std::runtime_error naming
  /// the rank that is missing, another user's process, or a rank on another host.
  static std::shared_ptr<SharedSegment> join(c10d::Store& store, int rank, int size,
                                             std::chrono::milliseconds timeout);

  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  int size() const { return size_; }
  SharedHeader& header() { return *reinterpret_cast<SharedHeader*>(bytes_); }
  /// kSmallBytes, written by `rank`; one of two.
  std::byte* small(int rank, std::size_t which) const;
  /// kStageBytes, written by `rank`; one of two.
  std::byte* stage(int rank, std::size_t which) const;

  /// The least rank whose process has ended or given up its segment, or -1.
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
  Socket alive_;              // this process's end of its pipe
  std::vector<Socket> lives_; // [rank]: closed at the other end when the rank's process has ended
};

} // namespace troupe::collectives
