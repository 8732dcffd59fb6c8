// libFuzzer target of the messages between remote environments and their clients, in both
// directions. The first byte selects the reader; then come the length of the header (two bytes),
// the header and one frame.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "env/remote/protocol.hpp"

namespace {

troupe::env::EnvironmentSpec one_number() {
  troupe::env::EnvironmentSpec spec;
  spec.name = "fake";
  spec.observations = {{"x", troupe::env::ElementType::float64, {}}};
  spec.action = {.minimum = {-1}, .maximum = {1}};
  return spec;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::env;
  using namespace troupe::env::remote;
  if (size < 3)
    return 0;
  const std::size_t length = std::min<std::size_t>(data[1] + std::size_t{256} * data[2], size - 3);
  wire::Message message;
  message.header.assign(reinterpret_cast<const char*>(data + 3), length);
  message.frames.emplace_back(std::as_bytes(std::span(data + 3 + length, size - 3 - length)));
  try {
    const auto envelope = decode_header(message);
    if (data[0] % 3 == 0) {
      if (decode_welcome(envelope, message, 2, 1 << 20).spec.observation_bytes() > 1U << 20)
        __builtin_trap();
    } else if (data[0] % 3 == 1) {
      const std::array<Asked, 2> asked{{{0, true}, {1, true}}};
      Results results;
      decode_played(envelope.played(), message, one_number(), asked, results);
      if (results.rows.size() != 2 || results.observations.size() != 16)
        __builtin_trap();
    } else {
      Plays plays;
      decode_play(envelope.play(), message, 2, 2, plays);
      for (const auto environment : plays.environments)
        if (environment >= 2)
          __builtin_trap();
    }
  } catch (const ProtocolError&) {
  }
  return 0;
}
