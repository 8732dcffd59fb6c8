#include "collectives/mesh/control_frame.hpp"

#include <cstring>
#include <stdexcept>

namespace troupe::collectives {
namespace {

struct FrameHeader {
  FrameKind kind{};
  std::uint32_t bytes = 0; // of the rest
};

bool is_valid(const FrameHeader& header) {
  switch (header.kind) {
  case FrameKind::fingerprint:
    return header.bytes >= sizeof(Fingerprint)
           && header.bytes <= sizeof(Fingerprint) + kMostPayload;
  case FrameKind::abort:
    return header.bytes <= kLongestReason;
  case FrameKind::data_failed:
    return header.bytes == 0;
  }
  return false;
}

} // namespace

std::vector<std::byte> encode_frame(FrameKind kind, std::span<const std::byte> content,
                                    std::span<const std::byte> payload) {
  const FrameHeader header{kind, static_cast<std::uint32_t>(content.size() + payload.size())};
  std::vector<std::byte> frame;
  frame.reserve(sizeof header + header.bytes);
  for (const auto part : {std::as_bytes(std::span(&header, 1)), content, payload})
    frame.insert(frame.end(), part.begin(), part.end());
  return frame;
}

std::optional<ControlFrame> first_frame(std::span<const std::byte> received) {
  FrameHeader header;
  if (received.size() < sizeof header)
    return std::nullopt;
  std::memcpy(&header, received.data(), sizeof header);
  if (!is_valid(header))
    throw std::invalid_argument("bytes that are not a frame of this version");
  if (received.size() < sizeof header + header.bytes)
    return std::nullopt;
  ControlFrame frame{.kind = header.kind,
                     .bytes = sizeof header + header.bytes,
                     .rest = received.subspan(sizeof header, header.bytes)};
  if (frame.kind == FrameKind::fingerprint) {
    std::memcpy(&frame.fingerprint, frame.rest.data(), sizeof frame.fingerprint);
    frame.rest = frame.rest.subspan(sizeof frame.fingerprint);
  }
  return frame;
}

} // namespace troupe::collectives
