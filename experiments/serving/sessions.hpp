#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::experiments::serving {

/// The server's state of an episode that a client plays.
struct Session {
  std::string version;            // the version that began it
  std::vector<float> state;       // for a policy with a memory
  std::vector<std::byte> history; // the latest frames of the first array, oldest first
};

/// Sessions by name. Only one request at a time can use a session. May be used from any thread.
class Sessions {
public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    std::size_t sessions = 10'000;
    std::chrono::seconds idle{600}; // sessions that are unused for longer are forgotten
  };
  explicit Sessions(const Limits& limits, std::function<Clock::time_point()> now = &Clock::now);

  enum class Taken { ok, unknown, busy, full };
  /// Moves the session out until it is put back. `begins` starts a new session in place of an old
  /// one.
  Taken take(const std::string& name, bool begins, Session& session);
  void put_back(const std::string& name, Session session);

  std::size_t size() const;

private:
  struct Entry {
    Session session;
    bool busy = false;
    Clock::time_point used;
  };
  void forget_idle();

  Limits limits_;
  std::function<Clock::time_point()> now_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
};

} // namespace troupe::experiments::serving
