#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "env/sockets/bell.hpp"
#include "env/wire/socket.hpp"

namespace troupe::env::remote {

using Clock = std::chrono::steady_clock;

/// Which peers may be at the other end.
struct PeerOptions {
  bool allow_other_hosts = false;
  std::optional<wire::ServerKeys> server_keys{};
  std::optional<wire::ClientKeys> client_keys{};
};

/// The client's side of the heartbeat: a thread that sends Pings of `session` and records when
/// Pongs arrive. The constructor does not wait.
class Heartbeat {
public:
  Heartbeat(wire::Context& context, const std::string& endpoint, std::uint64_t session,
            std::chrono::milliseconds interval, const PeerOptions& peer);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// Time since the last Pong, or since construction. Any thread.
  Clock::duration silent_for(Clock::time_point now) const;

private:
  void run(const std::stop_token& stop, std::chrono::milliseconds interval);
  void take_in();

  wire::Socket socket_;
  std::uint64_t session_;
  std::atomic<Clock::rep> last_pong_;
  wire::Bell wake_;
  std::jthread thread_; // last: it uses all of the above
};

/// The server's side of the heartbeat: a thread that reports every Ping to `seen` and answers it.
class HeartbeatAnswers {
public:
  /// `seen(session)` returns whether the session exists. It is called on the thread of this object.
  HeartbeatAnswers(wire::Context& context, const std::string& endpoint, const PeerOptions& peer,
                   std::function<bool(std::uint64_t session)> seen);
  ~HeartbeatAnswers();
  HeartbeatAnswers(const HeartbeatAnswers&) = delete;
  HeartbeatAnswers& operator=(const HeartbeatAnswers&) = delete;

  std::uint16_t port() const; // of tcp://; 0 for ipc://

private:
  void run(const std::stop_token& stop);

  wire::Socket socket_;
  std::string endpoint_;
  std::function<bool(std::uint64_t session)> seen_;
  wire::Bell wake_;
  std::jthread thread_;
};

} // namespace troupe::env::remote
