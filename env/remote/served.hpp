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

/// One client: its environments, and its last question's answer, which it may ask for again.
struct Session {
  std::vector<std::size_t> environments;
  std::uint64_t request = 0;
  std::string header;
  std::vector<std::vector<std::byte>> frames;
};

/// An answer without a body: the question's session and number.
message::Envelope answer_to(const message::Envelope& question);

/// The environments of a server and what clients may do with them. No sockets, no clock. One
/// thread; the counters any.
class Served {
public:
  /// Throws what `make` throws, std::invalid_argument where specs differ or cannot be served.
  Served(const EnvironmentServer::Make& make, const EnvironmentServerOptions& options);

  const EnvironmentSpec& spec() const { return spec_; }
  std::size_t size() const { return players_.size(); }

  void begin(const Session& session); // its environments have no episode yet
  void clear() { players_.clear(); }  // on the thread that may have their GL context

  /// Does what one question (play, save, load, bye) asks and leaves the answer in the session.
  /// Throws ProtocolError, or what load_state() throws, where it may not be done.
  void obey(Session& session, const message::Envelope& question, const wire::Message& message);

  std::int64_t turns() const { return turns_; }
  std::int64_t failures() const { return failures_; }

private:
  struct Player {
    std::unique_ptr<Environment> environment;
    bool playing = false; // is within an episode
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
