#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/mesh/fingerprint.hpp"

namespace troupe::collectives {

enum class FrameKind : std::uint32_t {
  fingerprint = 0x54460001, // of the sender's next call, with a payload
  abort = 0x54460002,       // the content is the reason
  data_failed = 0x54460003, // on the sender, or on a rank that reported it; without content
};

inline constexpr std::size_t kMostPayload = 16 << 10; // bytes that a fingerprint's frame may add
inline constexpr std::size_t kLongestReason = 2000;   // bytes

/// A frame of the control mesh. `rest` refers to the bytes from which it was read.
struct ControlFrame {
  FrameKind kind{};
  std::size_t bytes = 0;             // of the whole frame
  Fingerprint fingerprint{};         // of FrameKind::fingerprint
  std::span<const std::byte> rest{}; // the payload or the reason
};

/// Encodes a frame: kind and size of the rest in 32 bits each (little-endian), then the rest.
std::vector<std::byte> encode_frame(FrameKind kind, std::span<const std::byte> content,
                                    std::span<const std::byte> payload);

/// Reads the first frame of the received bytes, which are untrusted. Returns nothing until all of
/// it has arrived. Throws std::invalid_argument as soon as its kind is unknown or its size is not
/// one that its kind can have.
std::optional<ControlFrame> first_frame(std::span<const std::byte> received);

} // namespace troupe::collectives
