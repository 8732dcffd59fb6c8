#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace troupe::env::remote {

/// Which client has which environments. The clock is an argument.
class Leases {
public:
  using Time = std::chrono::steady_clock::time_point;

  Leases(std::size_t environments, std::chrono::milliseconds silence);

  struct Taken {
    std::vector<std::size_t> environments;
    std::vector<std::uint64_t> forgotten; // sessions that lost their environments
  };

  /// `count` environments for a new session, none when there are too few. Takes environments back
  /// from sessions that have been silent too long, if they are needed.
  Taken take(std::uint64_t session, std::size_t count, Time now);

  bool seen(std::uint64_t session, Time now); // false: no such session
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
