#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "env/remote/heartbeat.hpp"
#include "env/remote/protocol.hpp"
#include "env/remote/remote_environment.hpp"

namespace troupe::env::remote {

/// The client's connection, which asks one question at a time and receives its answer. It repeats a
/// question until it is answered (the peer answers a repeated question with the same answer), and
/// while the peer refuses because too few environments are free.
/// Heartbeats monitor the peer. Used by one thread. Every failure throws a ProtocolError with the
/// reason, but without the endpoint.
class Exchange {
public:
  /// Begins a new session; sends nothing yet.
  Exchange(wire::Context& context, const RemoteOptions& options);

  struct Answer {
    message::Envelope header;
    wire::Message message;
  };

  /// Sends a question, after setting its `protocol`, `session` and `request`.
  void ask(message::Envelope question, std::vector<std::byte> frame = {});

  /// Waits for the answer to the last question, which must be of the kind `expected`. `what` and
  /// `key` describe the wait in the error at the deadline, for example "a step of 16 environments"
  /// and "deadline".
  Answer wait(message::Envelope::BodyCase expected, std::chrono::milliseconds patience,
              const std::string& what, const char* key);

  /// Starts the heartbeats.
  void watch(wire::Context& context, const Invitation& invitation);

private:
  void send();
  bool is_answer(const message::Envelope& header) const;
  void check_alive(Clock::time_point now) const;

  const RemoteOptions& options_;
  wire::Socket socket_;
  std::uint64_t session_;
  std::uint64_t request_ = 0;
  bool with_frame_ = false;
  std::string header_; // of the last question
  std::vector<std::byte> frame_;
  std::unique_ptr<Heartbeat> heartbeat_;
};

} // namespace troupe::env::remote
