#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <poll.h>
#include <string>
#include <thread>

#include <netinet/in.h>
#include <sys/socket.h>

#include "collectives/mesh/socket.hpp"
#include "tests/eventually.hpp"

/// Peers that violate the protocol, for tests of open ports.
namespace troupe::testing {

using Clock = std::chrono::steady_clock;

inline collectives::Socket connected_to(int port) {
  return collectives::connect_to("127.0.0.1", port, Clock::now() + std::chrono::seconds(20));
}

inline bool say(const collectives::Socket& socket, const std::string& bytes) {
  return collectives::send_all(socket, std::as_bytes(std::span(bytes)),
                               Clock::now() + std::chrono::seconds(20));
}

/// Returns whether the peer closes the connection before `patience` has passed. Discards what it
/// sends until then.
inline bool is_closed(const collectives::Socket& socket,
                      std::chrono::milliseconds patience = std::chrono::seconds(20)) {
  const auto end = Clock::now() + patience;
  std::array<char, 4096> bytes{};
  while (Clock::now() < end) {
    pollfd item{socket.fd(), POLLIN, 0};
    if (::poll(&item, 1, 100) <= 0)
      continue;
    const auto got = ::recv(socket.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
      return true;
  }
  return false;
}

/// Relays connections between a client and a server. Records what the client sends, and can cut or
/// corrupt the traffic.
class Relay {
public:
  explicit Relay(int server_port)
      : server_port_(server_port),
        listener_(collectives::listen_at("127.0.0.1", 0)),
        port_(collectives::port_of(listener_)),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  int port() const { return port_; }
  /// Drops everything the client sends after `bytes` bytes, and closes the connection.
  void cut_after(std::size_t bytes) { cut_after_ = bytes; }
  /// Flips one bit of the client's byte number `at`.
  void falsify(std::size_t at) { falsified_ = at; }

  std::string recorded() const {
    const std::lock_guard lock(mutex_);
    return recorded_;
  }
  std::size_t from_client() const { return recorded().size(); }

private:
  void run(const std::stop_token& stop) {
    collectives::Socket client;
    collectives::Socket server;
    while (!stop.stop_requested()) {
      if (!client) {
        client = collectives::accept_from(listener_, Clock::now() + std::chrono::milliseconds(20));
        if (client) {
          server = connected_to(server_port_);
          const std::lock_guard lock(mutex_);
          recorded_.clear();
        }
        continue;
      }
      std::array<pollfd, 2> items{{{client.fd(), POLLIN, 0}, {server.fd(), POLLIN, 0}}};
      if (::poll(items.data(), items.size(), 20) <= 0)
        continue;
      const bool open = (items[0].revents == 0 || pass(client, server, true))
                        && (items[1].revents == 0 || pass(server, client, false));
      if (!open) {
        client = collectives::Socket();
        server = collectives::Socket();
      }
    }
  }

  bool pass(const collectives::Socket& from, const collectives::Socket& to, bool of_client) {
    std::array<char, 4096> bytes{};
    const auto got = ::recv(from.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0)
      return got < 0 && (errno == EAGAIN || errno == EINTR);
    std::string text(bytes.data(), static_cast<std::size_t>(got));
    bool open = true;
    if (of_client) {
      const std::lock_guard lock(mutex_);
      const std::size_t before = recorded_.size();
      recorded_ += text;
      if (falsified_ >= before && falsified_ < recorded_.size())
        text[falsified_ - before] ^= 1;
      if (recorded_.size() > cut_after_) {
        text.resize(cut_after_ > before ? cut_after_ - before : 0);
        open = false;
      }
    }
    return say(to, text) && open;
  }

  int server_port_;
  collectives::Socket listener_;
  int port_;
  std::atomic<std::size_t> cut_after_ = SIZE_MAX;
  std::atomic<std::size_t> falsified_ = SIZE_MAX;
  mutable std::mutex mutex_; // guards recorded_
  std::string recorded_;     // by the last connection
  std::jthread thread_;
};

} // namespace troupe::testing
