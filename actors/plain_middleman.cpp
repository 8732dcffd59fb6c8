#include "actors/plain_middleman.hpp"

#include <stdexcept>

#include <caf/io/all.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/doorman_impl.hpp>
#include <caf/io/network/scribe_impl.hpp>

#include "actors/message_limit.hpp"
#include "actors/messages.hpp"
#include "collectives/socket.hpp"

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

class PlainMiddleman : public caf::io::middleman_actor_impl {
public:
  PlainMiddleman(caf::actor_config& config, caf::actor broker, std::shared_ptr<Refusals> refusals,
                 std::chrono::milliseconds deadline)
      : middleman_actor_impl(config, std::move(broker)),
        refusals_(std::move(refusals)),
        deadline_(deadline) {}

  const char* name() const override { return "plain_middleman"; }

protected:
  caf::expected<caf::io::scribe_ptr> connect(const std::string& host, std::uint16_t port) override {
    try {
      auto socket =
          collectives::connect_to(host, port, std::chrono::steady_clock::now() + deadline_);
      return caf::io::scribe_ptr(
          caf::make_counted<PlainScribe>(loop(), socket.release(), refusals_));
    } catch (const std::exception& error) {
      return failure_of(error);
    }
  }

  caf::expected<caf::io::doorman_ptr> open(std::uint16_t port, const char* address, bool) override {
    try {
      auto listener = collectives::listen_at(address != nullptr ? address : "", port);
      network::nonblocking(listener.fd(), true);
      return caf::io::doorman_ptr(
          caf::make_counted<PlainDoorman>(loop(), listener.release(), refusals_));
    } catch (const std::exception& error) {
      return failure_of(error);
    }
  }

private:
  static caf::error failure_of(const std::exception& error) {
    return caf::make_error(Fault::failed, std::string(error.what()));
  }
  network::default_multiplexer& loop() {
    return static_cast<network::default_multiplexer&>(system().middleman().backend());
  }

  std::shared_ptr<Refusals> refusals_;
  std::chrono::milliseconds deadline_;
};

} // namespace

caf::io::middleman_actor spawn_plain_middleman(caf::actor_system& system,
                                               std::shared_ptr<Refusals> refusals,
                                               std::chrono::milliseconds connect_deadline) {
  const auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  return system.spawn<PlainMiddleman, caf::detached + caf::hidden>(broker, std::move(refusals),
                                                                   connect_deadline);
}

} // namespace troupe::actors
