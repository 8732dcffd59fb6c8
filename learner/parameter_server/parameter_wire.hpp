#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "env/wire/socket.hpp"
#include "learner/parameter_server/parameter_server.hpp"
#include "learner/parameter_server/parameter_server.pb.h"

/// Messages between ParameterServerClient and ParameterServerHost. A message is a header from
/// parameter_server.proto, followed by numbers (little-endian) in frames of at most kFrameBytes.
namespace troupe::learner {

constexpr std::uint32_t kParameterProtocol = 1;
constexpr std::size_t kFrameBytes = std::size_t{16} << 20;
constexpr std::int64_t kMostElements = std::int64_t{1} << 33; // in one slice

wire::Slice encode(const ServedSlice& slice);
/// Returns nullopt and sets `why` if `slice` is not valid.
std::optional<ServedSlice> decode(const wire::Slice& slice, std::string& why);

/// Returns the envelope, or nullopt and sets `why` for invalid bytes, another protocol version or
/// unknown bodies.
std::optional<wire::Envelope> decode_envelope(const std::string& header, std::string& why);

/// Splits the bytes of a contiguous CPU tensor into frames. `socket` provides memory that is shared
/// with `peer`.
std::vector<env::wire::Frame> frames_of(const at::Tensor& tensor, env::wire::Socket& socket,
                                        const std::string& peer);
/// Copies frames into a contiguous CPU tensor. Returns false if their total size differs from the
/// tensor's.
bool copy_frames(const std::vector<env::wire::Frame>& frames, at::Tensor& tensor);

} // namespace troupe::learner
