#pragma once

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include "collectives/mesh/socket.hpp"

namespace troupe::collectives {

/// Listens on its own loopback port, forwards the connections to another, and records the bytes of
/// both directions.
class RecordingRelay {
public:
  explicit RecordingRelay(int port)
      : listener_(listen_at("127.0.0.1", 0)),
        thread_([this, port](const std::stop_token& stop) { forward(port, stop); }) {}

  int port() const { return port_of(listener_); }

  std::string recorded() const {
    const std::lock_guard lock(mutex_);
    return recorded_;
  }

private:
  static constexpr std::chrono::milliseconds kLook{20}; // between checks for a stop
  static constexpr std::chrono::seconds kPatience{20};

  void forward(int port, const std::stop_token& stop) {
    std::vector<Socket> sockets; // in pairs
    while (!stop.stop_requested()) {
      std::vector<pollfd> items{{listener_.fd(), POLLIN, 0}};
      for (const auto& socket : sockets)
        items.push_back({socket.fd(), POLLIN, 0});
      poll(items.data(), items.size(), static_cast<int>(kLook.count()));
      for (std::size_t i = 0; i < sockets.size(); ++i)
        if (items[i + 1].revents != 0)
          pass_on(sockets[i], sockets[i ^ 1]);
      if (items[0].revents != 0) {
        sockets.push_back(accept_from(listener_, deadline()));
        sockets.push_back(connect_to("127.0.0.1", port, deadline()));
      }
    }
  }

  void pass_on(Socket& from, Socket& to) {
    std::vector<char> bytes(1 << 16);
    const auto got = recv(from.fd(), bytes.data(), bytes.size(), 0);
    if (got <= 0) {
      if (to)
        shutdown(to.fd(), SHUT_WR);
      from = Socket(); // poll() skips it
      return;
    }
    bytes.resize(static_cast<std::size_t>(got));
    send_all(to, std::as_bytes(std::span(bytes)), deadline());
    const std::lock_guard lock(mutex_);
    recorded_.append(bytes.begin(), bytes.end());
  }

  static Deadline deadline() { return std::chrono::steady_clock::now() + kPatience; }

  Socket listener_;
  mutable std::mutex mutex_;
  std::string recorded_;
  std::jthread thread_;
};

} // namespace troupe::collectives
