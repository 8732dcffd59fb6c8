#include "actors/remoting/plain_middleman.hpp"

#include <caf/io/basp/header.hpp>
#include <caf/io/network/doorman_impl.hpp>
#include <caf/io/network/scribe_impl.hpp>

#include "actors/protocol/message_limit.hpp"
#include "actors/remoting/own_middleman.hpp"
#include "actors/remoting/pending_handshakes.hpp"
#include "actors/remoting/refusals.hpp"
#include "env/sockets/peer_user.hpp"

namespace troupe::actors {

namespace {

namespace network = caf::io::network;

/// A connection of either side. One that was accepted must begin with CAF's handshake for clients,
/// and may announce no larger message before it is complete.
class PlainScribe : public network::scribe_impl {
public:
  /// `pending` is null for a connection to a server.
  PlainScribe(network::default_multiplexer& loop, network::native_socket socket,
              std::shared_ptr<Refusals> refusals, std::shared_ptr<PendingHandshakes> pending)
      : scribe_impl(loop, socket), refusals_(std::move(refusals)), pending_(std::move(pending)) {
    if (pending_)
      pending_->add(socket, scribe_impl::addr());
  }
  ~PlainScribe() override { end_handshake(); } // before the base closes the socket

  void configure_read(caf::io::receive_policy::config config) override {
    const std::size_t most = pending_ ? PendingHandshakes::kMostBytes : kMostMessageBytes;
    if (config.second > most)
      refuse("it announced a message of " + std::to_string(config.second) + " bytes, above "
             + std::to_string(most) + (pending_ ? ", before its handshake" : ""));
    scribe_impl::configure_read(within_limit(config, stream_.fd(), most));
  }

  bool consume(caf::execution_unit* context, const void* data, std::size_t bytes) override {
    if (std::exchange(has_header_, false)) {
      end_handshake(); // these bytes are its payload, or that of a later message
      return scribe_impl::consume(context, data, bytes);
    }
    const auto* header = static_cast<const unsigned char*>(data);
    const std::string problem = problem_of(header, bytes);
    if (problem.empty()) {
      has_header_ = payload_bytes(header) > 0;
      return scribe_impl::consume(context, data, bytes);
    }
    refuse(problem);
    io_failure(context, network::operation::read); // CAF closes the connection
    return false;
  }

private:
  /// CAF's header begins with the kind of the message, three other bytes and the payload's length
  /// in network byte order.
  static std::uint32_t payload_bytes(const unsigned char* header) {
    std::uint32_t length = 0;
    for (int i = 4; i < 8; ++i)
      length = length << 8 | header[i];
    return length;
  }
  /// Returns "" for a header that CAF may read.
  std::string problem_of(const unsigned char* header, std::size_t bytes) const {
    using caf::io::basp::message_type;
    const auto is = [&](message_type kind) { return header[0] == static_cast<int>(kind); };
    if (bytes < caf::io::basp::header_size)
      return "it sent an incomplete header";
    if (pending_ && !is(message_type::client_handshake))
      return "it did not begin with a handshake";
    if (!is(message_type::heartbeat) && payload_bytes(header) == 0) // CAF would read a null pointer
      return "it sent a message without a payload";
    return "";
  }
  void end_handshake() {
    if (const auto pending = std::exchange(pending_, nullptr))
      pending->remove(stream_.fd());
  }
  void refuse(const std::string& why) { refusals_->add("a peer at " + addr() + ": " + why); }

  std::shared_ptr<Refusals> refusals_;
  std::shared_ptr<PendingHandshakes> pending_; // until the peer's handshake is complete
  bool has_header_ = false;                    // the next bytes are a payload
};

class PlainDoorman : public network::doorman_impl {
public:
  PlainDoorman(network::default_multiplexer& loop, network::native_socket socket,
               std::shared_ptr<Refusals> refusals, std::shared_ptr<PendingHandshakes> pending)
      : doorman_impl(loop, socket),
        loop_(loop),
        refusals_(std::move(refusals)),
        pending_(std::move(pending)) {}

  bool new_connection() override {
    collectives::Socket socket(acceptor_.accepted_socket());
    if (detached())
      return false;
    if (!env::wire::is_own_user(env::wire::peer_user(socket.fd()))) {
      refusals_->add("a connection from another user of this host");
      return true;
    }
    network::keepalive(socket.fd(), true);
    const auto scribe =
        caf::make_counted<PlainScribe>(loop_, socket.release(), refusals_, pending_);
    const auto handle = scribe->hdl();
    parent()->add_scribe(scribe);
    return doorman::new_connection(&loop_, handle);
  }

private:
  network::default_multiplexer& loop_;
  std::shared_ptr<Refusals> refusals_;
  std::shared_ptr<PendingHandshakes> pending_;
};

} // namespace

caf::io::middleman_actor spawn_plain_middleman(caf::actor_system& system,
                                               std::shared_ptr<Refusals> refusals,
                                               std::shared_ptr<PendingHandshakes> pending,
                                               std::shared_ptr<Listeners> listeners,
                                               std::chrono::milliseconds connect_deadline) {
  return spawn_middleman(
      system, connect_deadline, std::move(listeners),
      {.name = "plain_middleman",
       .make_scribe = [refusals](Transport::Loop& loop, collectives::Socket connected,
                                 auto) -> caf::io::scribe_ptr {
         env::wire::check_server_user(env::wire::server_user(connected.fd()), "the process there");
         return caf::make_counted<PlainScribe>(loop, connected.release(), refusals, nullptr);
       },
       .make_doorman = [refusals, pending](Transport::Loop& loop,
                                           collectives::Socket listener) -> caf::io::doorman_ptr {
         return caf::make_counted<PlainDoorman>(loop, listener.release(), refusals, pending);
       }});
}

} // namespace troupe::actors
