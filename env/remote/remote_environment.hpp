#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/environment.hpp"
#include "env/wire/context.hpp"
#include "env/wire/keys.hpp"

namespace troupe::env {

/// The endpoint that plays environments for this process, and the limits for that peer.
struct RemoteOptions {
  std::string endpoint;         // "ipc:///run/x.ipc", "tcp://127.0.0.1:5555"
  std::size_t environments = 1; // 1 to 4096; used only by RemoteEnvironments
  /// For the first answer of the peer, and until enough of its environments are free. It should
  /// exceed the peer's silence, after which the environments of a lost connection are free again.
  std::chrono::milliseconds connect_deadline{15000};
  std::chrono::milliseconds deadline{30000}; // for one answer: a step or reset of all
  std::chrono::milliseconds silence{5000};   // without a heartbeat, before the peer counts as lost
  std::chrono::milliseconds heartbeat_interval{500};
  std::chrono::milliseconds retry_interval{1000}; // before a question is repeated; doubles
  bool allow_other_hosts = false;                 // tcp:// beyond loopback, servers of other users
  std::optional<wire::ClientKeys> keys{};         // encrypts; also allows endpoints beyond loopback
  std::size_t max_message_bytes = std::size_t{64} << 20; // observations of one answer
  std::shared_ptr<wire::Context> context{}; // shares ZeroMQ's I/O thread; null: creates its own
};

/// Throws std::invalid_argument naming the key, its value and the rule.
void check(const RemoteOptions& options);

/// The turn of one environment in a batch: do nothing, take a step, or begin an episode.
struct Turn {
  enum class Kind : std::uint8_t { keep, step, reset };
  Kind kind = Kind::step;
  std::uint64_t seed = 0; // for a reset
};

/// The caller's memory for results; row i is for environment i.
struct RemoteResults {
  std::span<TimeStep> steps;         // [environments]
  std::span<std::byte> observations; // [environments, spec().observation_bytes()]
};

/// A batch of equal environments at one endpoint, in another process or language. A step of all
/// environments takes one message in each direction. One thread at a time may use it; heartbeats
/// have their own thread.
///
/// failure(i) reports an environment that failed and must be reset; the others continue. If the
/// peer lies about its spec, stalls, vanishes, restarts, sends garbage or speaks another version,
/// the call throws std::runtime_error naming the endpoint and the rule, within the deadline. After
/// that, the only turn allowed is one that resets all environments. It reconnects, and the spec
/// must be unchanged.
class RemoteEnvironments {
public:
  /// Connects and requests the environments. Throws std::invalid_argument (options) or
  /// std::runtime_error (no such peer, or too few free environments, within connect_deadline; or it
  /// refuses).
  explicit RemoteEnvironments(const RemoteOptions& options);
  ~RemoteEnvironments(); // returns the environments; waits at most 200 ms
  RemoteEnvironments(const RemoteEnvironments&) = delete;
  RemoteEnvironments& operator=(const RemoteEnvironments&) = delete;

  const EnvironmentSpec& spec() const;
  std::size_t size() const;
  const std::string& endpoint() const;

  /// Steps all environments. `actions` is [size(), spec().action.size()] and finite. Continuous
  /// numbers are clipped to the bounds; a choice that is not one of its whole numbers throws
  /// std::invalid_argument. Returns the number of environments that failed. Their rows hold
  /// StepType::last and discount 1, and their observations are unchanged.
  std::size_t step(std::span<const double> actions, const RemoteResults& results);

  /// The general form, in one message: turn i is for environment i. Actions of environments that do
  /// not step are ignored. Rows of environments without a turn are unchanged.
  std::size_t play(std::span<const Turn> turns, std::span<const double> actions,
                   const RemoteResults& results);

  /// Why environment i failed in its last turn; "" if it did not.
  const std::string& failure(std::size_t environment) const;

  /// Whether the peer can save the state of an environment (Troupe's server can, Python's cannot).
  /// If it cannot, save() and load() throw std::runtime_error.
  bool can_save() const;
  std::vector<std::byte> save(std::size_t environment);
  void load(std::size_t environment, std::span<const std::byte> state);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns one environment of a peer as an Environment (options.environments is 1). Its failures
/// throw std::runtime_error, after which only reset() is allowed; reset() reconnects to a restarted
/// peer. save_state() throws std::runtime_error if the peer cannot save; a resumed run then begins
/// a new episode.
std::unique_ptr<Environment> make_remote(const RemoteOptions& options);

} // namespace troupe::env
