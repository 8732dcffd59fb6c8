#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
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
  /// Reserves a session until put_back(), undo() or end(), and moves it out. With `begins`,
  /// `session` is a new one; an old session of that name stays until the new one is put back.
  Taken take(const std::string& name, bool begins, Session& session);
  void put_back(const std::string& name, Session session);
  /// Releases what take() with `begins` reserved: an old session of that name continues.
  void undo(const std::string& name);
  /// Forgets a session that take() has reserved.
  void end(const std::string& name);

  std::size_t size(); // without expired ones

private:
  struct Entry {
    Session session;
    bool begun = false; // has been put back before
    bool busy = false;
    Clock::time_point used;
    std::list<std::string>::iterator place; // in idle_, unless busy
  };
  void release(const std::string& name, Entry& entry);
  void forget_idle();

  Limits limits_;
  std::function<Clock::time_point()> now_;
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
  std::list<std::string> idle_; // sessions that are not busy, least recently used first
};

} // namespace troupe::experiments::serving
