#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::env::wire {

/// Data frames between processes of one host and user go through memory that both map; small
/// frames, frames that do not fit and frames to other hosts travel in the message. Between a dealer
/// and its router, when both enable it.
struct SharedMemory {
  std::size_t bytes_per_peer = std::size_t{64} << 20;   // sent and not yet released; taken lazily
  std::size_t least_frame_bytes = std::size_t{1} << 10; // smaller frames travel in the message
  std::size_t max_peers = 256;                          // of a router; further peers get messages
  std::size_t max_peer_bytes = std::size_t{1} << 30;    // of one peer that this side maps
};

struct SharedCounters {
  std::int64_t links = 0;           // peers with which memory is shared now
  std::int64_t refused = 0;         // attempts to share that failed, on either side
  std::int64_t frames_sent = 0;     // through shared memory
  std::int64_t frames_received = 0; // through shared memory
  std::int64_t full = 0;            // frames sent in the message because the memory was full
  std::int64_t lost = 0; // messages dropped because their frames belonged to a lost or unknown peer
};

} // namespace troupe::env::wire
