#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <caf/io/all.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>

#include "actors/protocol/messages.hpp"
#include "collectives/mesh/socket.hpp"

namespace troupe::actors {

/// Listening sockets for ports at which actors will be published, so that no other process can take
/// such a port in between. Any thread.
class ReservedPorts {
public:
  std::uint16_t add(collectives::Socket listener) {
    const auto port = static_cast<std::uint16_t>(collectives::port_of(listener));
    const std::lock_guard lock(mutex_);
    sockets_[port] = std::move(listener);
    return port;
  }
  /// Returns an empty socket if the port is not reserved.
  collectives::Socket take(std::uint16_t port) {
    const std::lock_guard lock(mutex_);
    const auto found = sockets_.find(port);
    return found == sockets_.end() ? collectives::Socket()
                                   : std::move(sockets_.extract(found).mapped());
  }

private:
  std::mutex mutex_;
  std::map<std::uint16_t, collectives::Socket> sockets_;
};

/// CAF's interface to connections, over our own sockets. The derived class decides what they carry.
class OwnMiddleman : public caf::io::middleman_actor_impl {
public:
  OwnMiddleman(caf::actor_config& config, caf::actor broker, std::chrono::milliseconds deadline,
               std::shared_ptr<ReservedPorts> reserved)
      : middleman_actor_impl(config, std::move(broker)),
        deadline_(deadline),
        reserved_(std::move(reserved)) {}

protected:
  using Loop = caf::io::network::default_multiplexer;

  /// Make CAF's object for a connected or a listening socket. Both throw on failure.
  virtual caf::io::scribe_ptr make_scribe(Loop& loop, collectives::Socket connected,
                                          std::chrono::steady_clock::time_point deadline) = 0;
  virtual caf::io::doorman_ptr make_doorman(Loop& loop, collectives::Socket listener) = 0;

  caf::expected<caf::io::scribe_ptr> connect(const std::string& host, std::uint16_t port) final {
    try {
      const auto deadline = std::chrono::steady_clock::now() + deadline_;
      return make_scribe(loop(), collectives::connect_to(host, port, deadline), deadline);
    } catch (const std::exception& error) {
      return failure_of(error);
    }
  }

  caf::expected<caf::io::doorman_ptr> open(std::uint16_t port, const char* address, bool) final {
    try {
      auto listener = reserved_->take(port);
      if (!listener)
        listener = collectives::listen_at(address != nullptr ? address : "", port);
      caf::io::network::nonblocking(listener.fd(), true);
      return make_doorman(loop(), std::move(listener));
    } catch (const std::exception& error) {
      return failure_of(error);
    }
  }

private:
  static caf::error failure_of(const std::exception& error) {
    return caf::make_error(Fault::failed, std::string(error.what()));
  }
  Loop& loop() { return static_cast<Loop&>(system().middleman().backend()); }

  std::chrono::milliseconds deadline_;
  std::shared_ptr<ReservedPorts> reserved_;
};

/// Starts a middleman of this type for the system's broker.
template <class Middleman, class... Args>
caf::io::middleman_actor spawn_middleman(caf::actor_system& system, Args&&... args) {
  const auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  return system.spawn<Middleman, caf::detached + caf::hidden>(broker, std::forward<Args>(args)...);
}

} // namespace troupe::actors
