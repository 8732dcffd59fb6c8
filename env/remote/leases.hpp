#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace troupe::env::remote {

/// Records which client has which environments. The clock is an argument.
class Leases {
public:
  using Time = std::chrono::steady_clock::time_point;

  Leases(std::size_t environments, std::chrono::milliseconds silence);

  struct Taken {
    std::vector<std::size_t> environments;
    std::vector<std::uint64_t> forgotten; // sessions that lost their environments
  };

  /// Assigns `count` environments to a new session, or none if there are too few. If it needs more,
  /// it takes environments back from sessions that have been silent too long, unless they are too
  /// few even then.
  Taken take(std::uint64_t session, std::size_t count, Time now);

  bool seen(std::uint64_t session, Time now); // returns false if there is no such session
  void give_back(std::uint64_t session);

  std::size_t free() const { return free_.size(); }
  std::size_t sessions() const { return sessions_.size(); }

private:
  struct Session {
    std::vector<std::size_t> environments;
    Time seen;
  };
  std::map<std::uint64_t, Session> sessions_;
  std::vector<std::size_t> free_;
  std::chrono::milliseconds silence_;
};

} // namespace troupe::env::remote
