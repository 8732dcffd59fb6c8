#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "env/remote/environment_server.hpp"
#include "env/remote/protocol.hpp"

namespace troupe::env::remote {

/// One client: its environments, and the answer to its last question, which it may request again.
struct Session {
  std::vector<std::size_t> environments;
  std::uint64_t request = 0;
  std::string header;
  std::vector<std::vector<std::byte>> frames;
};

/// Returns an answer without a body, with the session and number of the question.
message::Envelope answer_to(const message::Envelope& question);

/// The environments of a server, and the operations that clients may perform on them. Uses no
/// sockets and no clock. One thread; any thread may read the counters.
class Served {
public:
  /// Throws the exceptions of `make`, and std::invalid_argument if specs differ or cannot be
  /// served.
  Served(const EnvironmentServer::Make& make, const EnvironmentServerOptions& options);

  const EnvironmentSpec& spec() const { return spec_; }
  std::size_t size() const { return players_.size(); }

  void begin(const Session& session); // its environments then have no episode
  void clear() { players_.clear(); }  // call it on the thread that may own their GL context

  /// Executes one question (play, save, load, bye) and stores the answer in the session. Throws
  /// ProtocolError, or an exception of load_state(), if the request is not allowed.
  void obey(Session& session, const message::Envelope& question, const wire::Message& message);

  std::int64_t turns() const { return turns_; }
  std::int64_t failures() const { return failures_; }

private:
  struct Player {
    std::unique_ptr<Environment> environment;
    bool playing = false; // within an episode
  };

  Player& player(const Session& session, std::uint32_t index);
  void play(Session& session, const message::Envelope& question, const wire::Message& message);
  std::string play_one(Player& player, std::size_t row, ResultRow& result,
                       std::span<std::byte> observation);

  std::vector<Player> players_;
  EnvironmentSpec spec_;
  bool can_save_;
  Plays plays_;
  std::atomic<std::int64_t> turns_ = 0;
  std::atomic<std::int64_t> failures_ = 0;
};

} // namespace troupe::env::remote
