// libFuzzer target of what sockets exchange with their peers, of endpoints, and of connections to a
// port without keys. The first byte selects the decoder, and the size of the pieces in which a
// connection's bytes arrive.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "env/wire/control.hpp"
#include "env/wire/deployment_keys.hpp"
#include "env/wire/zmtp_reader.hpp"
#include "tests/fuzz_seeds.hpp"

namespace {

using namespace troupe::env::wire;

enum Kind : std::uint8_t { kControl, kEndpoint, kGreeted, kStranger }; // greeted: after a handshake

// A part of this size is received in place. After a few others it exceeds the limit of a message.
constexpr std::size_t kLargePart = 70'000;
constexpr ZmtpLimits kLimits{
    .max_part_bytes = kLargePart, .max_parts = 4, .max_message_bytes = kLargePart + 100};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool accepts_control(const std::string& text) {
  const auto decoded = decode_control(std::as_bytes(std::span(text)));
  if (decoded && (encode(*decoded) != text || decoded->references.size() > kMostReferences))
    __builtin_trap();
  return decoded.has_value();
}

bool accepts_endpoint(const std::string& text) {
  const std::string endpoint = "tcp://" + text;
  is_loopback(endpoint);
  try {
    const auto parts = split_endpoint(endpoint);
    if (!parts.server_key.empty() && with_server_key(parts.address, parts.server_key) != endpoint)
      __builtin_trap();
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

ZmtpReader::Event next_event(ZmtpReader& reader, std::span<const std::byte>& bytes) {
  const auto gap = reader.gap();
  if (gap.empty())
    return reader.take(bytes);
  const std::size_t count = std::min(gap.size(), bytes.size());
  std::copy_n(bytes.begin(), count, gap.begin());
  bytes = bytes.subspan(count);
  return reader.filled(count);
}

/// Reads a connection in pieces of at most `piece` bytes. Returns the messages and commands.
std::string heard(const std::string& text, std::size_t piece) {
  ZmtpReader reader(kLimits);
  std::string events;
  for (auto left = std::as_bytes(std::span(text)); !left.empty();) {
    auto some = left.first(std::min(piece, left.size()));
    left = left.subspan(some.size());
    while (!some.empty()) {
      const auto event = next_event(reader, some);
      if (event == ZmtpReader::Event::stranger)
        return events + "stranger";
      if (reader.held_bytes() > kLimits.max_message_bytes)
        __builtin_trap();
      if (event == ZmtpReader::Event::command)
        events += "command " + reader.command();
      if (event != ZmtpReader::Event::message)
        continue;
      const ZmtpMessage message = reader.take_message();
      if (message.parts.size() > kLimits.max_parts || (message.cut && !message.parts.empty()))
        __builtin_trap();
      events += message.cut ? "cut" : "message";
      for (const Frame& part : message.parts)
        events += " " + text_of(part.bytes());
    }
  }
  return events;
}

bool accepts_connection(const std::string& text, std::size_t piece) {
  const std::string events = heard(text, piece);
  if (events != heard(text, text.size()))
    __builtin_trap(); // it depends on how the bytes are split
  return !events.ends_with("stranger");
}

std::string frame_of(const std::string& body, bool more, bool command = false) {
  std::vector<std::byte> head;
  append_zmtp_head(head, body.size(), more, command);
  return text_of(head) + body;
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  const Token token{{1, 2, 3}};
  const auto seed = [](Kind kind, const std::string& text) {
    return std::string(1, static_cast<char>(kind + 4 * 6)) + text; // pieces of 7 bytes
  };
  const std::string hello = text_of(zmtp_hello("DEALER"));
  const std::string message =
      frame_of("head", true) + frame_of("", true) + frame_of(std::string(300, 'l'), false);
  std::string cut;
  for (std::size_t part = 0; part < kLimits.max_parts + 1; ++part)
    cut += frame_of("part", part < kLimits.max_parts);
  std::vector<std::byte> large;
  append_zmtp_head(large, kLargePart, false);
  return {seed(kControl, encode({.kind = Control::Kind::hello, .token = token})),
          seed(kControl,
               encode({.kind = Control::Kind::offer, .token = token, .address = "troupe-name"})),
          seed(kControl,
               encode({.token = token,
                       .sequence = 77,
                       .references = {{.slot = 5, .generation = 9, .offset = 3, .size = 1000},
                                      {.place = 9, .slot = 4095, .generation = 2, .size = 64}}})),
          seed(kEndpoint, "127.0.0.1:7400"),
          seed(kEndpoint, "10.0.0.1:7400#" + std::string(40, '1')),
          seed(kStranger, hello + message),
          seed(kGreeted, message + frame_of("\4PINGtt", false, true) + frame_of("x", false)),
          seed(kGreeted, cut + message),
          seed(kGreeted, text_of(large) + "the beginning of a part"),
          seed(kGreeted, frame_of(std::string(200, 'x'), true) + text_of(large) + "skipped")};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::size_t piece = 1 + data[0] / 4;
  bool accepted = false;
  switch (data[0] % 4) {
  case kControl:
    accepted = accepts_control(text);
    break;
  case kEndpoint:
    accepted = accepts_endpoint(text);
    break;
  case kGreeted:
    accepted = accepts_connection(text_of(zmtp_hello("DEALER")) + text, piece);
    break;
  default:
    accepted = accepts_connection(text, piece);
  }
  return troupe::fuzz_result(accepted);
}
