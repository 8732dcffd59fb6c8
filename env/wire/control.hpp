#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Control parts are what the sockets of this library exchange in front of a message; callers never
/// see them. A Protobuf message never begins with the first byte of a control part. A header that
/// does is sent behind a control part without references. All numbers are little-endian.
namespace troupe::env::wire {

using Token = std::array<std::uint8_t, 16>; // names a link and authenticates its other end

constexpr std::uint16_t kSharingVersion = 1;
constexpr std::size_t kMostReferences = 60; // per message; keeps a control part below 1024 bytes
constexpr std::size_t kOffsetUnit = 64; // bytes; frames in shared memory begin at multiples of it

/// A data frame in the sender's shared memory.
struct Reference {
  std::uint16_t place = 0; // index among the frames of the message; increases
  std::uint16_t slot = 0;  // in the ledger
  std::uint32_t generation = 0;
  std::uint32_t offset = 0; // in units of kOffsetUnit
  std::uint32_t size = 0;   // bytes
};

struct Control {
  enum class Kind : std::uint16_t {
    hello = 1,  // a dealer has memory to share
    offer = 2,  // a router listens at `address` for the dealer with this token
    frames = 3, // references to frames of the message that follows
  };
  Kind kind = Kind::frames;
  Token token = {};
  std::uint64_t sequence = 0; // for `frames`: increases with every message that names the token
  std::vector<Reference> references = {};
  std::string address = {};
};

/// A packet on the connection over which two sockets share memory. The first packet in each
/// direction carries the two descriptors of a heap. The dealer then confirms that it has mapped the
/// router's heap.
struct Join {
  std::uint32_t magic = 0x53505254; // "TRPS"
  std::uint32_t version = kSharingVersion;
  Token token = {};
  std::uint64_t bytes = 0; // size of the heap; 0: no heap, confirms the mapping
};
static_assert(sizeof(Join) == 32);

bool is_control(std::span<const std::byte> part);
bool is_control(std::string_view header);
std::string encode(const Control& control);
/// Returns nullopt if `part` is not a control part of this version.
std::optional<Control> decode_control(std::span<const std::byte> part);

/// Returns unpredictable bytes. Throws std::runtime_error if the system cannot provide them.
Token make_token();

} // namespace troupe::env::wire
