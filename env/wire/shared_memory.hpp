#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::env::wire {

/// Options for sending data frames between processes of one host and user through memory that both
/// map. Small frames, frames that do not fit and frames to other hosts travel in the message.
/// Applies between a dealer and its router if both enable it.
struct SharedMemory {
  std::size_t bytes_per_peer = std::size_t{64} << 20;   // not yet released; committed lazily
  std::size_t least_frame_bytes = std::size_t{1} << 10; // smaller frames travel in the message
  std::size_t max_peers = 256;                          // for a router; further peers get messages
  std::size_t max_peer_bytes = std::size_t{1} << 30;    // of one peer's memory that this side maps
};

struct SharedCounters {
  std::int64_t links = 0;           // peers that share memory now
  std::int64_t refused = 0;         // attempts to share that failed, on either side
  std::int64_t frames_sent = 0;     // through shared memory
  std::int64_t frames_received = 0; // through shared memory
  std::int64_t full = 0;            // frames sent in the message because the memory was full
  std::int64_t lost = 0; // messages dropped because their frames belonged to a lost or unknown peer
};

} // namespace troupe::env::wire
