#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "env/wire/socket.hpp"
#include "learner/parameter_server/parameter_server.hpp"
#include "learner/parameter_server/parameter_server.pb.h"

/// Messages between ParameterServerClient and ParameterServerHost: headers of
/// parameter_server.proto, then numbers (little endian) in frames of at most kFrameBytes.
namespace troupe::learner {

constexpr std::uint32_t kParameterProtocol = 1;
constexpr std::size_t kFrameBytes = std::size_t{16} << 20;
constexpr std::int64_t kMostElements = std::int64_t{1} << 33; // of a slice

wire::Slice encode(const ServedSlice& slice);
/// nullopt and `why` on what is no slice.
std::optional<ServedSlice> decode(const wire::Slice& slice, std::string& why);

/// The envelope, or nullopt and `why` on garbage, another protocol and unknown bodies.
std::optional<wire::Envelope> decode_envelope(const std::string& header, std::string& why);

/// Bytes of a contiguous CPU tensor, as frames; `socket` gives memory that its `peer` shares.
std::vector<env::wire::Frame> frames_of(const at::Tensor& tensor, env::wire::Socket& socket,
                                        const std::string& peer);
/// Frames into a contiguous CPU tensor. False when they do not have exactly its bytes.
bool copy_frames(const std::vector<env::wire::Frame>& frames, at::Tensor& tensor);

} // namespace troupe::learner
