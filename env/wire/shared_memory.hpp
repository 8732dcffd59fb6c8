#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::env::wire {

/// Data frames between processes of one host and user go through memory that both map; what does
/// not fit, is small, or goes elsewhere travels in the message. Between one dealer and the router
/// it connects to, when both ask for it.
struct SharedMemory {
  std::size_t bytes_per_peer = std::size_t{64} << 20;   // sent and not yet released; taken lazily
  std::size_t least_frame_bytes = std::size_t{1} << 10; // smaller frames travel in the message
  std::size_t max_peers = 256;                          // of a router; the others get messages
  std::size_t max_peer_bytes = std::size_t{1} << 30;    // that a peer may let this side map
};

struct SharedCounters {
  std::int64_t links = 0;           // peers with which memory is shared now
  std::int64_t refused = 0;         // attempts to share that failed, on either side
  std::int64_t frames_sent = 0;     // through shared memory
  std::int64_t frames_received = 0; // through shared memory
  std::int64_t full = 0;            // frames sent in the message because the memory was full
  std::int64_t lost = 0; // messages dropped: their frames lay with a peer that is gone or unknown
};

} // namespace troupe::env::wire
