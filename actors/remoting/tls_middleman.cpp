#include "actors/remoting/tls_middleman.hpp"

#include <fcntl.h>
#include <stdexcept>
#include <utility>

#include <caf/io/network/doorman_impl.hpp>
#include <caf/io/network/stream_impl.hpp>

#include "actors/protocol/message_limit.hpp"
#include "actors/remoting/own_middleman.hpp"

namespace troupe::actors {

namespace {

namespace network = caf::io::network;
using Clock = std::chrono::steady_clock;
using Session = std::unique_ptr<TlsSession>;

/// The transport of CAF's stream over TLS.
class TlsPolicy {
public:
  explicit TlsPolicy(Session session) : session_(std::move(session)) {}

  network::rw_state read_some(std::size_t& got, network::native_socket, void* into,
                              std::size_t size) {
    return answer(session_->read(into, size, got));
  }
  network::rw_state write_some(std::size_t& sent, network::native_socket, const void* from,
                               std::size_t size) {
    sent = 0;
    return size == 0 ? network::rw_state::indeterminate : answer(session_->write(from, size, sent));
  }
  /// Bytes that are already buffered here cause no socket event.
  bool must_read_more(network::native_socket, std::size_t threshold) const {
    return session_->pending() >= std::max<std::size_t>(threshold, 1);
  }

private:
  static network::rw_state answer(TlsSession::State state) {
    return state == TlsSession::State::failed ? network::rw_state::failure
                                              : network::rw_state::success;
  }
  Session session_;
};

/// A connection whose peer is authenticated. Owns its socket through the stream.
class TlsScribe : public caf::io::scribe {
public:
  TlsScribe(network::default_multiplexer& loop, env::wire::Descriptor socket, Session session)
      : scribe(network::conn_hdl_from_socket(socket.number())),
        stream_(loop, socket.number(), std::move(session)) {
    socket.release();
  }

  void configure_read(caf::io::receive_policy::config config) override {
    stream_.configure_read(within_limit(config, stream_.fd()));
    if (!std::exchange(is_launched_, true))
      stream_.start(this);
  }
  void ack_writes(bool enable) override { stream_.ack_writes(enable); }
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  void flush() override { stream_.flush(this); }
  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }
  std::string addr() const override {
    const auto address = network::remote_addr_of_fd(stream_.fd());
    return address ? *address : std::string();
  }
  std::uint16_t port() const override {
    const auto port = network::remote_port_of_fd(stream_.fd());
    return port ? *port : std::uint16_t{0};
  }
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

private:
  bool is_launched_ = false;
  network::stream_impl<TlsPolicy> stream_;
};

/// Listens, and passes each new connection to the gate.
class TlsDoorman : public network::doorman_impl {
public:
  TlsDoorman(network::default_multiplexer& loop, network::native_socket socket,
             const std::shared_ptr<HandshakeGate>& gate)
      : doorman_impl(loop, socket), loop_(loop), gate_(gate) {}

  bool new_connection() override {
    env::wire::Descriptor socket(acceptor_.accepted_socket());
    const auto gate = gate_.lock();
    if (detached() || !gate)
      return false;
    network::nonblocking(socket.number(), true);
    network::tcp_nodelay(socket.number(), true);
    const auto address = network::remote_addr_of_fd(socket.number());
    gate->take(std::move(socket), address ? *address : std::string("an unknown address"),
               [self = caf::intrusive_ptr<TlsDoorman>(this)](env::wire::Descriptor known,
                                                             Session session) {
                 self->admit_later(std::move(known), std::move(session));
               });
    return true;
  }

private:
  struct Known {
    env::wire::Descriptor socket;
    Session session;
  };

  void admit_later(env::wire::Descriptor socket, Session session) {
    const auto known = std::make_shared<Known>(Known{std::move(socket), std::move(session)});
    loop_.post([self = caf::intrusive_ptr<TlsDoorman>(this), known] { self->admit(*known); });
  }
  void admit(Known& known) {
    if (detached())
      return;
    const auto scribe =
        caf::make_counted<TlsScribe>(loop_, std::move(known.socket), std::move(known.session));
    const auto handle = scribe->hdl();
    parent()->add_scribe(scribe);
    doorman::new_connection(&loop_, handle);
  }

  network::default_multiplexer& loop_;
  std::weak_ptr<HandshakeGate> gate_;
};

/// Completes the handshake and reads the greeting. Throws std::runtime_error with the cause.
void shake_hands(TlsSession& session, int socket, Clock::time_point deadline) {
  const auto finish = [&](auto step) {
    for (;;) {
      const auto state = step();
      if (state == TlsSession::State::done)
        return;
      if (state == TlsSession::State::failed)
        throw std::runtime_error(session.why());
      if (!wait_for_socket(socket, state, deadline))
        throw std::runtime_error("no answer to the TLS handshake in time");
    }
  };
  finish([&] { return session.handshake(); });
  std::string said;
  finish([&] { // the listening side greets once it has accepted our certificate
    std::array<char, kGreeting.size()> bytes{};
    for (;;) {
      std::size_t got = 0;
      const auto state = session.read(bytes.data(), kGreeting.size() - said.size(), got);
      said.append(bytes.data(), got);
      if (state != TlsSession::State::done || said.size() == kGreeting.size())
        return state;
    }
  });
  if (said != kGreeting)
    throw std::runtime_error("the peer speaks another version of the protocol");
}

} // namespace

caf::io::middleman_actor spawn_tls_middleman(caf::actor_system& system,
                                             std::shared_ptr<const TlsContext> context,
                                             const std::shared_ptr<HandshakeGate>& gate,
                                             std::shared_ptr<Listeners> listeners,
                                             std::chrono::milliseconds handshake_deadline) {
  return spawn_middleman(
      system, handshake_deadline, std::move(listeners),
      {.name = "tls_middleman",
       .make_scribe = [context](Transport::Loop& loop, collectives::Socket connected,
                                Clock::time_point deadline) -> caf::io::scribe_ptr {
         env::wire::Descriptor socket(connected.release());
         auto session =
             std::make_unique<TlsSession>(*context, socket.number(), TlsSession::Side::connects);
         shake_hands(*session, socket.number(), deadline);
         return caf::make_counted<TlsScribe>(loop, std::move(socket), std::move(session));
       },
       .make_doorman = [gate = std::weak_ptr<HandshakeGate>(gate)](
                           Transport::Loop& loop,
                           collectives::Socket listener) -> caf::io::doorman_ptr {
         return caf::make_counted<TlsDoorman>(loop, listener.release(), gate.lock());
       }});
}

} // namespace troupe::actors
