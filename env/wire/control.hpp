#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Parts that sockets of this library exchange in front of a message, invisible to its owners. A
/// Protobuf message never begins with their first byte; a header that does travels behind a control
/// part without references. All numbers are little endian.
namespace troupe::env::wire {

using Token = std::array<std::uint8_t, 16>; // names a link and authenticates its other end

constexpr std::uint16_t kSharingVersion = 1;
constexpr std::size_t kMostReferences = 60; // of a message; a control part is below 1024 bytes
constexpr std::size_t kOffsetUnit = 64;     // bytes; frames in shared memory begin at multiples

/// A data frame in the sender's shared memory.
struct Reference {
  std::uint16_t place = 0; // among the frames of the message; increasing
  std::uint16_t slot = 0;  // of the ledger
  std::uint32_t generation = 0;
  std::uint32_t offset = 0; // in units of kOffsetUnit
  std::uint32_t size = 0;   // bytes
};

struct Control {
  enum class Kind : std::uint16_t {
    hello = 1,  // a dealer has memory to share
    offer = 2,  // a router listens at `address` for the dealer with this token
    frames = 3, // of the message that follows
  };
  Kind kind = Kind::frames;
  Token token = {};
  std::uint64_t sequence = 0; // of frames: counts up with every message that names the token
  std::vector<Reference> references = {};
  std::string address = {};
};

/// A packet of the connection that shares memory: the first, each way, carries the two descriptors
/// of a heap; then the dealer confirms that it has mapped the router's.
struct Join {
  std::uint32_t magic = 0x53505254; // "TRPS"
  std::uint32_t version = kSharingVersion;
  Token token = {};
  std::uint64_t bytes = 0; // of the heap; 0: no heap, confirms the mapping
};
static_assert(sizeof(Join) == 32);

bool is_control(std::span<const std::byte> part);
bool is_control(std::string_view header);
std::string encode(const Control& control);
/// nullopt for bytes that are no control part of this version.
std::optional<Control> decode_control(std::span<const std::byte> part);

/// Unpredictable bytes. Throws std::runtime_error when the system has none.
Token make_token();
std::string hexadecimal(const Token& token);

} // namespace troupe::env::wire
