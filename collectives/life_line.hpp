#pragma once

#include <chrono>
#include <string>

#include "collectives/socket.hpp"

namespace troupe::collectives {

/// Tells a dead process from a slow one: each listens, for as long as it lives, at a port that it
/// never serves, and the system refuses or resets the connection of whoever watches once it is
/// gone. A frozen process or host looks alive: that is for a deadline.
class LifeLine {
public:
  /// `host` is this process's address that the others reach.
  explicit LifeLine(const std::string& host);

  /// "host port", for Watch.
  const std::string& address() const { return address_; }

private:
  Socket listener_;
  std::string address_;
};

/// The watch over another process's life line.
class Watch {
public:
  explicit Watch(const std::string& address);

  /// Whether the process is known to be dead. Does not wait.
  bool dead();

private:
  Socket socket_;
  bool dead_ = false;
};

} // namespace troupe::collectives
