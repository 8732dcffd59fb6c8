// libFuzzer target of the messages between remote environments and their clients, in both
// directions. An input is a sequence of messages. Each begins with a byte that selects its reader:
// a client, or a server that plays toy environments for one client. Then come the length of the
// header (two bytes) and the header, and in the same way two frames. An empty frame is left out.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "env/remote/protocol.hpp"
#include "env/remote/served.hpp"
#include "tests/env/remote/toy.hpp"
#include "tests/fuzz_seeds.hpp"

namespace {

using namespace troupe::env;
using namespace troupe::env::remote;
using Bytes = std::span<const std::uint8_t>;

enum Reader : std::uint8_t { kWelcome, kPlayed, kServer };

EnvironmentSpec one_number() {
  EnvironmentSpec spec;
  spec.name = "fake";
  spec.observations = {{"x", ElementType::float64, {}}};
  spec.action = {.minimum = {-1}, .maximum = {1}};
  return spec;
}

Bytes take(Bytes& from) {
  if (from.size() < 2) {
    from = {};
    return {};
  }
  const std::size_t size =
      std::min<std::size_t>(from[0] + std::size_t{256} * from[1], from.size() - 2);
  const auto taken = from.subspan(2, size);
  from = from.subspan(2 + size);
  return taken;
}

/// A server of two environments with one client.
class Server {
public:
  Server() { served_.begin(session_); }

  void obey(const message::Envelope& question, const wire::Message& message) {
    served_.obey(session_, question, message);
    if (!question.has_play())
      return;
    Plays plays;
    decode_play(question.play(), message, 2, 2, plays);
    const std::size_t rows = plays.environments.size();
    if (session_.frames.at(0).size() != rows * sizeof(ResultRow) || plays.seeds.size() != rows
        || plays.actions.size() != 2 * rows)
      __builtin_trap();
    for (const std::size_t environment : plays.environments)
      if (environment >= 2)
        __builtin_trap();
  }

private:
  Served served_{[] { return std::make_unique<troupe::tests::Toy>(); }, {.environments = 2}};
  Session session_{.environments = {0, 1}, .header = {}, .frames = {}};
};

void read(std::uint8_t reader, const wire::Message& message, Server& server) {
  const auto envelope = decode_header(message);
  if (reader == kWelcome) {
    const auto spec = decode_welcome(envelope, message, 2, 1 << 20).spec;
    if (spec.observation_bytes() > 1U << 20 || !problem_of(spec.action).empty())
      __builtin_trap();
  } else if (reader == kPlayed) {
    const std::array<Asked, 2> asked{{{0, true}, {1, true}}};
    Results results;
    decode_played(envelope.played(), message, one_number(), asked, results);
    if (results.rows.size() != 2 || results.failures.size() != 2
        || results.observations.size() != 16)
      __builtin_trap();
  } else {
    server.obey(envelope, message);
  }
}

std::string sized(const std::string& bytes) {
  return std::string{static_cast<char>(bytes.size() % 256), static_cast<char>(bytes.size() / 256)}
         + bytes;
}

std::string message_of(Reader reader, const message::Envelope& envelope, Bytes first = {},
                       Bytes second = {}) {
  return std::string(1, static_cast<char>(reader)) + sized(encode(envelope).header)
         + sized({first.begin(), first.end()}) + sized({second.begin(), second.end()});
}

message::Envelope envelope_of(std::uint64_t request) {
  message::Envelope made;
  made.set_protocol(kProtocol);
  made.set_session(42);
  made.set_request(request);
  return made;
}

message::Envelope welcome_with(const EnvironmentSpec& spec) {
  auto made = envelope_of(1);
  *made.mutable_welcome()->mutable_spec() = encode_spec(spec);
  made.mutable_welcome()->set_environments(2);
  made.mutable_welcome()->set_row_bytes(row_bytes(spec));
  return made;
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  auto played = envelope_of(2);
  auto& failure = *played.mutable_played()->add_failures();
  failure.set_row(1);
  failure.set_message("exploded");
  std::array<ResultRow, 2> rows;
  rows[1].step_type = kFailed;
  auto reset = envelope_of(3), step = envelope_of(4), bye = envelope_of(5);
  reset.mutable_play()->set_resets(std::string(2, '\1'));
  reset.mutable_play()->add_seeds(7);
  reset.mutable_play()->add_seeds(8);
  step.mutable_play()->add_environments(1);
  bye.mutable_bye();
  const std::array<std::uint8_t, 32> zeros{};
  const Bytes actions(zeros);
  const Bytes results(reinterpret_cast<const std::uint8_t*>(rows.data()), sizeof rows);
  return {message_of(kWelcome, welcome_with(one_number())),
          message_of(kWelcome, welcome_with(tests::Chooser(tests::mixed_action()).spec())),
          message_of(kPlayed, played, results, actions.first(16)),
          message_of(kServer, reset, actions) + message_of(kServer, step, actions.first(16))
              + message_of(kServer, bye)};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Server server;
  for (Bytes left(data, size); !left.empty();) {
    const std::uint8_t reader = left[0] % 3;
    left = left.subspan(1);
    wire::Message message;
    const Bytes header = take(left);
    message.header.assign(header.begin(), header.end());
    for (int i = 0; i < 2; ++i)
      if (const Bytes frame = take(left); !frame.empty())
        message.frames.emplace_back(std::as_bytes(frame));
    try {
      read(reader, message, server);
    } catch (const ProtocolError&) {
    }
  }
  return 0;
}
