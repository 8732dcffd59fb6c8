#include "actors/remoting/remoting.hpp"

#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include <caf/io/all.hpp>

#include "actors/protocol/system.hpp"
#include "actors/remoting/handshake_gate.hpp"
#include "actors/remoting/own_middleman.hpp"
#include "actors/remoting/pending_handshakes.hpp"
#include "actors/remoting/plain_middleman.hpp"
#include "actors/remoting/refusals.hpp"
#include "actors/remoting/tls_middleman.hpp"

namespace troupe::actors {

struct Remoting::Middleman {
  caf::io::middleman_actor handle;            // stopped by our destructor
  std::shared_ptr<PendingHandshakes> pending; // only without keys
  std::shared_ptr<Listeners> listeners;
  std::mutex mutex;
  std::vector<std::uint16_t> published{}; // ports
};

namespace {

constexpr std::chrono::seconds kListenDeadline{10};

} // namespace

Remoting::Remoting(caf::actor_system& system, RemotingOptions options)
    : system_(system),
      keys_(std::move(options.keys)),
      refusals_(std::make_shared<Refusals>(std::move(options.on_stranger))),
      middleman_(std::make_unique<Middleman>()) {
  middleman_->listeners = std::make_shared<Listeners>(options.unreachable);
  if (!keys_) {
    middleman_->pending = std::make_shared<PendingHandshakes>(options.handshake_deadline,
                                                              options.most_handshakes, refusals_);
    middleman_->handle = spawn_plain_middleman(system, refusals_, middleman_->pending,
                                               middleman_->listeners, options.handshake_deadline);
    return;
  }
  context_ = std::make_shared<TlsContext>(*keys_);
  gate_ = std::make_shared<HandshakeGate>(
      context_, refusals_,
      HandshakeGate::Options{.deadline = options.handshake_deadline,
                             .most_handshakes = options.most_handshakes});
  middleman_->handle = spawn_tls_middleman(system, context_, gate_, middleman_->listeners,
                                           options.handshake_deadline);
}

Remoting::~Remoting() {
  gate_.reset(); // its thread passes no more peers to the actor system
  const caf::scoped_actor self(system_, true);
  // The system's broker would keep the ports until the system ends.
  for (const std::uint16_t port : middleman_->published)
    self->request(middleman_->handle, kListenDeadline, caf::close_atom_v, port)
        .receive([] {}, [](const caf::error&) {});
  self->send_exit(middleman_->handle, caf::exit_reason::kill); // a lesser reason does not stop it
  self->wait_for(middleman_->handle);
}

std::int64_t Remoting::strangers() const {
  return refusals_->count();
}

std::size_t Remoting::handshakes() const {
  return gate_ ? gate_->handshakes() : middleman_->pending->count();
}

void Remoting::check_address(const std::string& address, const char* what) const {
  if (!keys_ && !collectives::is_loopback(address))
    throw std::invalid_argument(
        std::string(what) + " " + address
        + ": it is not on this host's loopback interface, and without keys "
          "nothing is encrypted or authenticated; make keys with `troupe keys "
          "cluster DIR` and give every process --keys DIR (TROUPE_KEYS), "
          "or use 127.0.0.1");
}

std::uint16_t Remoting::reserve(const std::string& address) {
  check_address(address, "listening at");
  return middleman_->listeners->reserve(address);
}

std::uint16_t Remoting::publish_at(const caf::strong_actor_ptr& whom,
                                   std::set<std::string> signatures, const std::string& address,
                                   std::uint16_t port) {
  check_address(address, "listening at");
  const caf::scoped_actor self(system_, true);
  std::uint16_t listens = 0;
  std::string problem;
  self->request(middleman_->handle, kListenDeadline, caf::publish_atom_v, port, whom,
                std::move(signatures), address, false)
      .receive([&](std::uint16_t got) { listens = got; },
               [&](const caf::error& error) { problem = explain(system_, error); });
  if (!problem.empty())
    throw std::runtime_error("cannot listen at " + address + ":" + std::to_string(port) + ": "
                             + problem);
  const std::lock_guard lock(middleman_->mutex);
  middleman_->published.push_back(listens);
  return listens;
}

caf::strong_actor_ptr Remoting::connect_to(const std::set<std::string>& signatures,
                                           const std::string& host, std::uint16_t port,
                                           std::chrono::milliseconds deadline) {
  check_address(host, "connecting to");
  const caf::scoped_actor self(system_, true);
  caf::strong_actor_ptr found;
  std::string problem;
  self->request(middleman_->handle, deadline, caf::connect_atom_v, host, port)
      .receive(
          [&](const caf::node_id&, const caf::strong_actor_ptr& actor,
              const std::set<std::string>& offered) {
            if (!actor)
              problem = "no actor is published there";
            else if (!system_.assignable(offered, signatures))
              problem =
                  "the actor published there speaks another protocol; run the same version of "
                  "troupe at both ends";
            else
              found = actor;
          },
          [&](const caf::error& error) { problem = explain(system_, error); });
  if (!problem.empty())
    throw std::runtime_error("cannot reach " + host + ":" + std::to_string(port) + ": " + problem);
  return found;
}

} // namespace troupe::actors
