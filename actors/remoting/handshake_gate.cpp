#include "actors/remoting/handshake_gate.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <poll.h>
#include <stdexcept>
#include <unistd.h>
#include <utility>

#include <sys/eventfd.h>

#include "actors/remoting/refusals.hpp"

namespace troupe::actors {

namespace {
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kNap{60'000};
} // namespace

HandshakeGate::HandshakeGate(std::shared_ptr<const TlsContext> context,
                             std::shared_ptr<Refusals> refusals, Options options)
    : context_(std::move(context)),
      refusals_(std::move(refusals)),
      options_(options),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!bell_)
    throw std::runtime_error(std::string("cannot create an event for handshakes: ")
                             + std::strerror(errno));
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

HandshakeGate::~HandshakeGate() {
  thread_.request_stop();
  ring();
}

void HandshakeGate::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(bell_.number(), &one, sizeof one);
}

void HandshakeGate::take(env::wire::Descriptor socket, std::string address, Admit admit) {
  Peer peer{.socket = std::move(socket),
            .address = std::move(address),
            .admit = std::move(admit),
            .session = nullptr,
            .deadline = Clock::now() + options_.deadline};
  const std::lock_guard lock(mutex_);
  if (arrivals_.size() >= options_.most_handshakes) { // the thread cannot keep up
    refuse(arrivals_.front(), "too many connections without a handshake");
    arrivals_.erase(arrivals_.begin());
  }
  arrivals_.push_back(std::move(peer));
  ring();
}

std::size_t HandshakeGate::handshakes() const {
  const std::lock_guard lock(mutex_);
  return at_work_ + arrivals_.size();
}

void HandshakeGate::welcome_arrivals() {
  std::vector<Peer> arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(arrivals_);
    at_work_ = peers_.size() + arrived.size();
  }
  for (Peer& peer : arrived) {
    peer.session =
        std::make_unique<TlsSession>(*context_, peer.socket.number(), TlsSession::Side::listens);
    peers_.push_back(std::move(peer));
    make_room();
  }
}

void HandshakeGate::make_room() {
  if (peers_.size() <= options_.most_handshakes)
    return;
  std::map<std::string, std::size_t> count;
  for (const Peer& peer : peers_)
    ++count[peer.address];
  const auto busiest = std::max_element(
      count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto oldest = std::find_if(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return peer.address == busiest->first;
  });
  refuse(*oldest, "too many connections without a handshake");
  peers_.erase(oldest);
}

void HandshakeGate::refuse(const Peer& peer, const std::string& why) {
  refusals_->add("a peer at " + peer.address + ": " + why);
}

bool HandshakeGate::advance(Peer& peer) {
  using State = TlsSession::State;
  if (!peer.greets) {
    peer.state = peer.session->handshake();
    peer.greets = peer.state == State::done;
  }
  if (peer.greets) {
    std::size_t sent = 0;
    peer.state = peer.session->write(kGreeting.data(), kGreeting.size(), sent);
  }
  if (peer.state == State::done)
    peer.admit(std::move(peer.socket), std::move(peer.session));
  else if (peer.state != State::failed)
    return true;
  else if (peer.session->has_received())
    refuse(peer, peer.session->why());
  return false;
}

void HandshakeGate::run(const std::stop_token& stop) {
  std::vector<pollfd> items;
  while (!stop.stop_requested()) {
    welcome_arrivals();
    // All have the same time limit, so the oldest expires first.
    while (!peers_.empty() && peers_.front().deadline <= Clock::now()) {
      refuse(peers_.front(),
             "no handshake within " + std::to_string(options_.deadline.count()) + " ms");
      peers_.pop_front();
    }
    at_work_ = peers_.size();
    items = {{bell_.number(), POLLIN, 0}};
    for (const Peer& peer : peers_)
      items.push_back(
          {peer.socket.number(),
           static_cast<short>(peer.state == TlsSession::State::wants_write ? POLLOUT : POLLIN), 0});
    auto nap = kNap;
    if (!peers_.empty())
      nap = std::clamp(
          std::chrono::ceil<std::chrono::milliseconds>(peers_.front().deadline - Clock::now()),
          std::chrono::milliseconds(0), kNap);
    if (::poll(items.data(), items.size(), static_cast<int>(nap.count())) <= 0)
      continue;
    std::uint64_t rung = 0;
    [[maybe_unused]] const auto read = ::read(bell_.number(), &rung, sizeof rung);
    std::size_t i = 1;
    for (auto peer = peers_.begin(); peer != peers_.end(); ++i) {
      const bool stays = items[i].revents == 0 || advance(*peer);
      peer = stays ? std::next(peer) : peers_.erase(peer);
    }
  }
}

} // namespace troupe::actors
