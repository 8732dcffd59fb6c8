#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "env/environment.hpp"
#include "env/wire/context.hpp"
#include "env/wire/keys.hpp"

namespace troupe::env {

struct EnvironmentServerOptions {
  std::string endpoint = "tcp://127.0.0.1:*"; // or ipc:///path; * picks a port
  std::size_t environments = 1;               // 1 to 4096, for all clients together
  bool allow_other_hosts = false;             // allow binding to addresses other than loopback
  std::optional<wire::ServerKeys> keys{};     // encrypts; also allows binding beyond loopback
  bool can_save = false;                    // clients may save and load states: trusts their bytes
  std::chrono::milliseconds silence{10000}; // before a silent client's environments are free
  std::size_t max_message_bytes = std::size_t{64} << 20;
  /// Reports clients and garbage, on the thread that plays; before that, on the thread that makes
  /// the server, that everyone is admitted.
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

struct EnvironmentServerCounters {
  std::int64_t turns = 0;    // steps and resets of single environments
  std::int64_t failures = 0; // turns whose environment threw
  std::int64_t garbage = 0;  // messages dropped
  std::int64_t clients = 0;  // that hold environments now
};

/// Serves equal environments to RemoteEnvironments, or to the Python package's GymnasiumEnv,
/// GymnasiumVectorEnv and DmEnv, in this or other processes. Each client has its own environments
/// until it returns them or its heartbeats stop. One thread plays; a GL context created by a reset
/// stays on it. Another thread answers heartbeats.
///
/// An environment that throws fails alone. Malformed messages are dropped and counted.
class EnvironmentServer {
public:
  using Make = std::function<std::unique_ptr<Environment>()>;

  /// Creates the environments and binds. Throws the exceptions of `make`, std::invalid_argument
  /// (options, or specs that differ or are too large), and std::runtime_error (the endpoint cannot
  /// be bound).
  EnvironmentServer(std::shared_ptr<wire::Context> context, const Make& make,
                    const EnvironmentServerOptions& options = {});
  ~EnvironmentServer(); // ends both threads after the current turn
  EnvironmentServer(const EnvironmentServer&) = delete;
  EnvironmentServer& operator=(const EnvironmentServer&) = delete;

  const EnvironmentSpec& spec() const;
  const std::string& endpoint() const;        // with the port, "tcp://127.0.0.1:40123"
  EnvironmentServerCounters counters() const; // any thread

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace troupe::env
