// libFuzzer target of what sockets exchange with their peers, of connections to a port without
// keys, and of endpoints. The first byte selects the decoder.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "env/wire/control.hpp"
#include "env/wire/deployment_keys.hpp"
#include "env/wire/zmtp_reader.hpp"

namespace {

/// Reads any number of messages from one connection, in pieces of at most `piece` bytes.
void read_connection(std::span<const std::byte> bytes, std::size_t piece) {
  using namespace troupe::env::wire;
  constexpr ZmtpLimits kLimits{.max_part_bytes = 1000, .max_parts = 4, .max_message_bytes = 2000};
  ZmtpReader reader(kLimits);
  const auto hello = zmtp_hello("DEALER");
  std::span<const std::byte> first(hello);
  while (!first.empty())
    if (reader.take(first) == ZmtpReader::Event::stranger)
      __builtin_trap();
  while (!bytes.empty()) {
    std::span<const std::byte> some = bytes.first(std::min(piece, bytes.size()));
    bytes = bytes.subspan(some.size());
    while (!some.empty()) {
      const auto event = reader.take(some);
      if (event == ZmtpReader::Event::stranger)
        return;
      if (reader.held_bytes() > kLimits.max_message_bytes)
        __builtin_trap();
      if (event == ZmtpReader::Event::message
          && reader.take_message().parts.size() > kLimits.max_parts)
        __builtin_trap();
    }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::env::wire;
  if (size == 0)
    return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 4 == 3) {
    read_connection(std::as_bytes(std::span(text)), 1 + data[0] / 4);
    return 0;
  }
  if (data[0] % 2 == 0) {
    const auto decoded = decode_control(std::as_bytes(std::span(text)));
    // A decoded message cannot have more references than its bytes allow.
    if (decoded && decoded->references.size() * sizeof(Reference) > text.size())
      __builtin_trap();
    return 0;
  }
  try {
    const std::string endpoint = "tcp://" + text;
    const auto parts = split_endpoint(endpoint);
    if (!parts.server_key.empty() && with_server_key(parts.address, parts.server_key) != endpoint)
      __builtin_trap();
    is_loopback(endpoint);
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
