#include "env/remote/protocol.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "env/checks.hpp"

namespace troupe::env::remote {

static_assert(std::endian::native == std::endian::little, "data frames are little-endian");

namespace {

constexpr std::int64_t kMaxSilenceMilliseconds = 86'400'000;

[[noreturn]] void fail(const std::string& text) {
  throw ProtocolError(text);
}

/// Describes the fault in the numbers of one row, or returns "".
std::string complaint(const EnvironmentSpec& spec, const ResultRow& row,
                      std::span<const std::byte> observation) {
  if (!std::isfinite(row.reward))
    return "its reward is " + std::to_string(row.reward) + "; it must be finite";
  if (!(row.discount >= 0 && row.discount <= 1))
    return "its discount is " + std::to_string(row.discount) + "; it must be between 0 and 1";
  std::size_t offset = 0;
  for (const ArraySpec& array : spec.observations) {
    if (const auto bad = first_not_finite(array, observation.subspan(offset, array.bytes())))
      return "its observation '" + array.name + "' is not finite at element "
             + std::to_string(*bad);
    offset += (array.bytes() + 7) / 8 * 8;
  }
  return "";
}

void check_frames(const wire::Message& message, std::size_t count, const char* what) {
  if (message.frames.size() != count)
    fail(std::string(what) + " has " + std::to_string(message.frames.size())
         + " data frames; it must have " + std::to_string(count));
}

} // namespace

std::string printable(const std::string& text, std::size_t limit) {
  std::string out;
  const auto continuation = [&](std::size_t i) {
    return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xc0U) == 0x80U;
  };
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    std::size_t length = 1;
    bool good = first >= 0x20 && first < 0x7f;
    if (first >= 0xc3 && first < 0xe0) { // from U+00C0; lower ones are controls and symbols
      length = 2;
      good = continuation(i + 1);
    } else if (first >= 0xe1 && first < 0xf0 && first != 0xed) { // no surrogates
      length = 3;
      good = continuation(i + 1) && continuation(i + 2);
    }
    if (!good)
      length = 1;
    if (out.size() + length > limit)
      return out.substr(0, limit);
    out += good ? text.substr(i, length) : "?";
    i += length;
  }
  return out;
}

message::Envelope decode_header(const wire::Message& message) {
  message::Envelope envelope;
  if (message.header.size() > kMaxHeader || !envelope.ParseFromString(message.header))
    fail("a message's header is not a Protobuf Envelope");
  if (envelope.protocol() != kProtocol)
    fail("it speaks version " + std::to_string(envelope.protocol())
         + " of the protocol and this side version " + std::to_string(kProtocol)
         + "; use Troupe and troupe_env of the same release on both sides"
         + (envelope.has_refused() ? " (it says: " + printable(envelope.refused().message()) + ")"
                                   : ""));
  return envelope;
}

wire::Message encode(const message::Envelope& envelope) {
  wire::Message message;
  envelope.SerializeToString(&message.header);
  return message;
}

Invitation decode_welcome(const message::Envelope& envelope, const wire::Message& message,
                          std::size_t environments, std::size_t max_message_bytes) {
  const message::Welcome& welcome = envelope.welcome();
  check_frames(message, 0, "its welcome");
  if (welcome.environments() != environments)
    fail("it offers " + std::to_string(welcome.environments()) + " environments where "
         + std::to_string(environments) + " were asked for");
  Invitation out{.spec = decode_spec(welcome.spec(), max_message_bytes),
                 .environments = environments,
                 .can_save = welcome.can_save()};
  if (welcome.row_bytes() != row_bytes(out.spec))
    fail("it contradicts its spec: an observation has " + std::to_string(row_bytes(out.spec))
         + " bytes by its arrays and " + std::to_string(welcome.row_bytes()) + " by row_bytes");
  if (environments > max_message_bytes / row_bytes(out.spec))
    fail("the observations of " + std::to_string(environments) + " environments, "
         + std::to_string(row_bytes(out.spec)) + " bytes each, exceed max_message_bytes = "
         + std::to_string(max_message_bytes) + "; ask for fewer or raise it");
  if (welcome.has_heartbeat()) {
    out.heartbeat = true;
    if (welcome.heartbeat().port() > 65535)
      fail("its heartbeat port is " + std::to_string(welcome.heartbeat().port())
           + "; it must be 0 to 65535");
    out.heartbeat_port = static_cast<std::uint16_t>(welcome.heartbeat().port());
    out.silence_milliseconds = welcome.heartbeat().silence_milliseconds();
    if (out.silence_milliseconds < 1 || out.silence_milliseconds > kMaxSilenceMilliseconds)
      fail("it takes environments back after " + std::to_string(out.silence_milliseconds)
           + " ms of silence; it must be 1 ms to a day");
  }
  return out;
}

void decode_play(const message::Play& play, const wire::Message& message, std::size_t environments,
                 std::size_t actions, Plays& out) {
  out = {};
  if (play.environments().empty()) {
    for (std::size_t i = 0; i < environments; ++i)
      out.environments.push_back(i);
  } else {
    std::vector<bool> seen(environments);
    for (const std::uint32_t i : play.environments()) {
      if (i >= environments || seen[i])
        fail("environment " + std::to_string(i)
             + " is listed twice, or is not one of this client's " + std::to_string(environments));
      seen[i] = true;
      out.environments.push_back(i);
    }
  }
  const std::size_t rows = out.environments.size();
  if (!play.resets().empty() && play.resets().size() != rows)
    fail("`resets` has " + std::to_string(play.resets().size()) + " flags for "
         + std::to_string(rows) + " environments");
  int next = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const bool reset = !play.resets().empty() && play.resets()[row] != 0;
    if (reset && next == play.seeds_size())
      fail("there are fewer seeds than resets");
    out.resets.push_back(reset);
    out.seeds.push_back(reset ? play.seeds(next++) : 0);
  }
  if (next != play.seeds_size())
    fail("there are more seeds than resets");
  check_frames(message, 1, "a play");
  const auto bytes = message.frames[0].bytes();
  if (bytes.size() != rows * actions * sizeof(double))
    fail("its actions have " + std::to_string(bytes.size()) + " bytes where float64 ["
         + std::to_string(rows) + ", " + std::to_string(actions) + "] has "
         + std::to_string(rows * actions * sizeof(double)));
  out.actions.resize(rows * actions);
  std::memcpy(out.actions.data(), bytes.data(), bytes.size());
}

void decode_played(const message::Played& played, const wire::Message& message,
                   const EnvironmentSpec& spec, std::span<const Asked> asked, Results& out) {
  const std::size_t row_size = row_bytes(spec);
  check_frames(message, 2, "its answer");
  const auto results = message.frames[0].bytes();
  out.observations = message.frames[1].bytes();
  if (results.size() != asked.size() * sizeof(ResultRow))
    fail("its results have " + std::to_string(results.size()) + " bytes where "
         + std::to_string(asked.size()) + " rows of 24 were asked for");
  if (out.observations.size() != asked.size() * row_size)
    fail("it contradicts its spec: its observations have " + std::to_string(out.observations.size())
         + " bytes where " + std::to_string(asked.size()) + " rows of " + std::to_string(row_size)
         + " are expected");
  out.rows.resize(asked.size());
  std::memcpy(out.rows.data(), results.data(), results.size());
  out.failures.assign(asked.size(), "");
  for (const message::Failure& failure : played.failures()) {
    if (failure.row() >= asked.size() || out.rows[failure.row()].step_type != kFailed)
      fail("it reports a failure of row " + std::to_string(failure.row()) + ", which did not fail");
    out.failures[failure.row()] =
        failure.message().empty() ? "(no reason given)" : printable(failure.message());
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    ResultRow& row = out.rows[i];
    if (row.step_type == kFailed) {
      if (out.failures[i].empty())
        out.failures[i] = "(no reason given)";
      continue;
    }
    const bool good =
        asked[i].reset ? row.step_type == 0 : row.step_type == 1 || row.step_type == 2;
    if (!good)
      fail("environment " + std::to_string(asked[i].environment) + " answers a "
           + (asked[i].reset ? "reset" : "step") + " with step type "
           + std::to_string(row.step_type) + "; it must be "
           + (asked[i].reset ? "0 (first)" : "1 (mid) or 2 (last)"));
    out.failures[i] = complaint(spec, row, out.observations.subspan(i * row_size, row_size));
    if (!out.failures[i].empty())
      row.step_type = kFailed;
  }
}

} // namespace troupe::env::remote
