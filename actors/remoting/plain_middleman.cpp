#include "actors/remoting/plain_middleman.hpp"

#include <caf/io/network/doorman_impl.hpp>
#include <caf/io/network/scribe_impl.hpp>

#include "actors/protocol/message_limit.hpp"
#include "actors/remoting/own_middleman.hpp"
#include "env/sockets/peer_user.hpp"

namespace troupe::actors {

namespace {

namespace network = caf::io::network;

class PlainScribe : public network::scribe_impl {
public:
  PlainScribe(network::default_multiplexer& loop, network::native_socket socket,
              std::shared_ptr<Refusals> refusals)
      : scribe_impl(loop, socket), refusals_(std::move(refusals)) {}

  void configure_read(caf::io::receive_policy::config config) override {
    if (config.second > kMostMessageBytes)
      refusals_->add("a peer at " + addr() + ": it announced a message of "
                     + std::to_string(config.second) + " bytes, above "
                     + std::to_string(kMostMessageBytes));
    scribe_impl::configure_read(within_limit(config, stream_.fd()));
  }

private:
  std::shared_ptr<Refusals> refusals_;
};

class PlainDoorman : public network::doorman_impl {
public:
  PlainDoorman(network::default_multiplexer& loop, network::native_socket socket,
               std::shared_ptr<Refusals> refusals)
      : doorman_impl(loop, socket), loop_(loop), refusals_(std::move(refusals)) {}

  bool new_connection() override {
    collectives::Socket socket(acceptor_.accepted_socket());
    if (detached())
      return false;
    if (!env::wire::is_own_user(env::wire::peer_user(socket.fd()))) {
      refusals_->add("a connection from another user of this host");
      return true;
    }
    network::keepalive(socket.fd(), true);
    const auto scribe = caf::make_counted<PlainScribe>(loop_, socket.release(), refusals_);
    const auto handle = scribe->hdl();
    parent()->add_scribe(scribe);
    return doorman::new_connection(&loop_, handle);
  }

private:
  network::default_multiplexer& loop_;
  std::shared_ptr<Refusals> refusals_;
};

class PlainMiddleman : public OwnMiddleman {
public:
  PlainMiddleman(caf::actor_config& config, caf::actor broker, std::chrono::milliseconds deadline,
                 std::shared_ptr<ReservedPorts> reserved, std::shared_ptr<Refusals> refusals)
      : OwnMiddleman(config, std::move(broker), deadline, std::move(reserved)),
        refusals_(std::move(refusals)) {}

  const char* name() const override { return "plain_middleman"; }

protected:
  caf::io::scribe_ptr make_scribe(Loop& loop, collectives::Socket connected,
                                  std::chrono::steady_clock::time_point) override {
    env::wire::check_server_user(env::wire::server_user(connected.fd()), "the process there");
    return caf::make_counted<PlainScribe>(loop, connected.release(), refusals_);
  }
  caf::io::doorman_ptr make_doorman(Loop& loop, collectives::Socket listener) override {
    return caf::make_counted<PlainDoorman>(loop, listener.release(), refusals_);
  }

private:
  std::shared_ptr<Refusals> refusals_;
};

} // namespace

caf::io::middleman_actor spawn_plain_middleman(caf::actor_system& system,
                                               std::shared_ptr<Refusals> refusals,
                                               std::shared_ptr<ReservedPorts> reserved,
                                               std::chrono::milliseconds connect_deadline) {
  return spawn_middleman<PlainMiddleman>(system, connect_deadline, std::move(reserved),
                                         std::move(refusals));
}

} // namespace troupe::actors
