#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "env/sockets/descriptor.hpp"

namespace troupe::env::wire {

constexpr std::size_t kSlots = 4096; // most frames of a heap in flight or held

/// What a receiver has read and released of a sender's frames; the receiver writes, the sender
/// reads. Whatever the content, at worst the sender reuses a frame's memory too early.
struct Ledger {
  std::atomic<std::uint64_t> seen; // sequence of the newest message received
  std::array<std::atomic<std::uint64_t>, kSlots> slots;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

constexpr std::uint64_t held(std::uint32_t generation) {
  return std::uint64_t{generation} << 1U;
}
constexpr std::uint64_t released(std::uint32_t generation) {
  return held(generation) | 1U;
}

} // namespace troupe::env::wire
