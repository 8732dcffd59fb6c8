#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "env/sockets/descriptor.hpp"

namespace troupe::env::wire {

constexpr std::size_t kSlots = 4096; // maximum frames of a heap in flight or held

/// Records which of a sender's frames a receiver has read and released. The receiver writes it and
/// the sender reads it. Whatever it contains, the worst effect is that the sender reuses the memory
/// of a frame too early.
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
