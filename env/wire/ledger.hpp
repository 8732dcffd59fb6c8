#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "env/wire/descriptor.hpp"

namespace troupe::env::wire {

constexpr std::size_t kSlots = 4096; // frames of a heap that may be on their way or held at a time

/// What a receiver tells the sender of frames in shared memory; the receiver writes, the sender
/// reads. Whatever stands here, the sender at worst gives a frame's place to another frame.
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
