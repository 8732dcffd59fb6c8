#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/remote/remote.pb.h"
#include "env/wire/socket.hpp"

/// The protocol as pure functions, which encode messages and decode them as untrusted input. They
/// use no sockets and no clock. See remote.proto.
namespace troupe::env::remote {

inline constexpr std::uint32_t kProtocol = 1;
inline constexpr std::size_t kMaxEnvironments = 4096;
inline constexpr std::size_t kMaxArrays = 64;
inline constexpr std::size_t kMaxDimensions = 8;
inline constexpr std::size_t kMaxActions = 4096;
inline constexpr std::size_t kMaxName = 200;     // bytes
inline constexpr std::size_t kMaxMessage = 2000; // bytes in the text of a failure or refusal
inline constexpr std::size_t kMaxHeader = std::size_t{1} << 20;

/// Thrown if a peer's message breaks a rule. The text names the rule and what was sent; the code
/// that catches the exception adds the endpoint.
class ProtocolError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// One row of the `results` frame of Played.
struct ResultRow {
  double reward = 0;
  double discount = 1;
  std::int64_t step_type = 0;
};
inline constexpr std::int64_t kFailed = 3; // beside StepType's 0, 1, 2
static_assert(sizeof(ResultRow) == 24);

/// Bytes of one environment's observation in a frame: a multiple of 8, so that the arrays are
/// aligned.
std::size_t row_bytes(const EnvironmentSpec& spec);

/// Returns at most `limit` bytes of printable UTF-8 without line breaks, for messages to people. A
/// peer's text is never printed as it arrived.
std::string printable(const std::string& text, std::size_t limit = kMaxMessage);

/// Throws ProtocolError if no environment can have this spec, or if one observation has more than
/// `max_bytes`.
void check_spec(const EnvironmentSpec& spec, std::size_t max_bytes);

message::Spec encode_spec(const EnvironmentSpec& spec);
EnvironmentSpec decode_spec(const message::Spec& spec, std::size_t max_bytes);

/// Parses the header and checks its version. Throws ProtocolError.
message::Envelope decode_header(const wire::Message& message);
wire::Message encode(const message::Envelope& envelope);

/// Describes the first difference between two specs, or returns "".
std::string difference(const EnvironmentSpec& before, const EnvironmentSpec& now);

/// What a client learns from a Welcome. decode_welcome() throws ProtocolError if the Welcome does
/// not match the request.
struct Invitation {
  EnvironmentSpec spec;
  std::size_t environments = 0;
  bool can_save = false;
  bool heartbeat = false;
  std::uint16_t heartbeat_port = 0;
  std::int64_t silence_milliseconds = 0;
};
Invitation decode_welcome(const message::Envelope& envelope, const wire::Message& message,
                          std::size_t environments, std::size_t max_message_bytes);

/// A validated Play, for the server. Row r is for environment `environments[r]`.
struct Plays {
  std::vector<std::size_t> environments;
  std::vector<bool> resets;
  std::vector<std::uint64_t> seeds; // per row; 0 without a reset
  std::vector<double> actions;      // [rows, actions]
};
void decode_play(const message::Play& play, const wire::Message& message, std::size_t environments,
                 std::size_t actions, Plays& out);

/// The request behind one row of a Played, for the client.
struct Asked {
  std::size_t environment = 0;
  bool reset = false;
};

/// A validated Played. The spans point into the message.
struct Results {
  std::vector<ResultRow> rows;
  std::vector<std::string> failures;       // per row; "" without a failure
  std::span<const std::byte> observations; // [rows, row_bytes]
};

/// Throws ProtocolError if frames, counts or step types are wrong. If only the numbers of one row
/// are wrong (not finite, or a discount outside [0, 1]), that row becomes a failure.
void decode_played(const message::Played& played, const wire::Message& message,
                   const EnvironmentSpec& spec, std::span<const Asked> asked, Results& out);

/// Checks that an endpoint has the form "ipc:///path" or "tcp://host:port", and that it is on
/// loopback unless other hosts are allowed. Throws std::invalid_argument.
void check_endpoint(const std::string& endpoint, bool allow_other_hosts, bool port_may_be_any);

/// Returns the heartbeat endpoint of a peer at `endpoint`; `port` comes from its Welcome.
std::string heartbeat_endpoint(const std::string& endpoint, std::uint16_t port);

/// Returns the endpoint at which a server binds its heartbeat socket.
std::string heartbeat_bind(const std::string& endpoint);

} // namespace troupe::env::remote
