#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <caf/io/all.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>

#include "actors/protocol/messages.hpp"
#include "collectives/mesh/socket.hpp"

namespace troupe::actors {

/// Makes listening sockets. A port at which an actor will be published can be reserved, so that no
/// other process takes it in between. Any thread.
class Listeners {
public:
  /// A connection breaks if its peer's host acknowledges nothing for `unreachable` (0: the
  /// system decides).
  explicit Listeners(std::chrono::milliseconds unreachable) : unreachable_(unreachable) {}

  /// Listens at a free port of `address` and returns the port.
  std::uint16_t reserve(const std::string& address) {
    auto made = listen(address, 0);
    const auto port = static_cast<std::uint16_t>(collectives::port_of(made));
    const std::lock_guard lock(mutex_);
    sockets_[port] = std::move(made);
    return port;
  }
  /// Returns the reserved socket of the port, or a new one.
  collectives::Socket take(const std::string& address, std::uint16_t port) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = sockets_.find(port); found != sockets_.end())
        return std::move(sockets_.extract(found).mapped());
    }
    return listen(address, port);
  }

private:
  collectives::Socket listen(const std::string& address, std::uint16_t port) const {
    auto made = collectives::listen_at(address, port);
    const auto milliseconds = static_cast<unsigned>(unreachable_.count());
    if (::setsockopt(made.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds)
        != 0) // accepted sockets inherit it
      throw std::system_error(errno, std::generic_category(), "TCP_USER_TIMEOUT");
    return made;
  }

  std::chrono::milliseconds unreachable_;
  std::mutex mutex_;
  std::map<std::uint16_t, collectives::Socket> sockets_; // reserved
};

/// What the connections carry. The functions make CAF's object for a connected or a listening
/// socket; both throw on failure.
struct Transport {
  using Loop = caf::io::network::default_multiplexer;
  const char* name = "";
  std::function<caf::io::scribe_ptr(Loop& loop, collectives::Socket connected,
                                    std::chrono::steady_clock::time_point deadline)>
      make_scribe = {};
  std::function<caf::io::doorman_ptr(Loop& loop, collectives::Socket listener)> make_doorman = {};
};

/// CAF's interface to connections, over our own sockets.
class OwnMiddleman : public caf::io::middleman_actor_impl {
public:
  OwnMiddleman(caf::actor_config& config, caf::actor broker, std::chrono::milliseconds deadline,
               std::shared_ptr<Listeners> listeners, Transport transport)
      : middleman_actor_impl(config, std::move(broker)),
        deadline_(deadline),
        listeners_(std::move(listeners)),
        transport_(std::move(transport)) {}

  const char* name() const override { return transport_.name; }

protected:
  caf::expected<caf::io::scribe_ptr> connect(const std::string& host, std::uint16_t port) override {
    try {
      const auto deadline = std::chrono::steady_clock::now() + deadline_;
      return transport_.make_scribe(loop(), collectives::connect_to(host, port, deadline),
                                    deadline);
    } catch (const std::exception& error) {
      return failure_of(error);
    }
  }

  caf::expected<caf::io::doorman_ptr> open(std::uint16_t port, const char* address, bool) override {
    try {
      auto listener = listeners_->take(address != nullptr ? address : "", port);
      caf::io::network::nonblocking(listener.fd(), true);
      return transport_.make_doorman(loop(), std::move(listener));
    } catch (const std::exception& error) {
      return failure_of(error);
    }
  }

private:
  static caf::error failure_of(const std::exception& error) {
    return caf::make_error(Fault::failed, std::string(error.what()));
  }
  Transport::Loop& loop() { return static_cast<Transport::Loop&>(system().middleman().backend()); }

  std::chrono::milliseconds deadline_;
  std::shared_ptr<Listeners> listeners_;
  Transport transport_;
};

/// Starts a middleman for the system's broker.
inline caf::io::middleman_actor spawn_middleman(caf::actor_system& system,
                                                std::chrono::milliseconds deadline,
                                                std::shared_ptr<Listeners> listeners,
                                                Transport transport) {
  const auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  return system.spawn<OwnMiddleman, caf::detached + caf::hidden>(
      broker, deadline, std::move(listeners), std::move(transport));
}

} // namespace troupe::actors
