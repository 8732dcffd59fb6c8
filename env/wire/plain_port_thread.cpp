#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "env/sockets/peer_user.hpp"
#include "env/wire/plain_port_impl.hpp"

namespace troupe::env::wire {

namespace {

constexpr std::chrono::seconds kHandshakeTime{10};
constexpr std::chrono::milliseconds kLook{500}; // how often the clock is checked
constexpr std::size_t kReadAtOnce = 1 << 20;    // bytes from one peer before the others get a turn
constexpr std::size_t kWrittenAtOnce = 1 << 20; // likewise, to one peer
constexpr int kMostEvents = 64;
/// Bytes in the system that are not on their way to a peer. The system's own limit is megabytes:
/// thousands of answers to a peer that does not read them.
constexpr int kUnsentBytes = 128 << 10;

} // namespace

void PlainPort::Impl::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "wire port");
  std::array<epoll_event, kMostEvents> events;
  while (!stop.stop_requested()) {
    const int timeout = has_unready || !accepts ? static_cast<int>(kLook.count()) : -1;
    const int count = ::epoll_wait(epoll.number(), events.data(), kMostEvents, timeout);
    for (int i = 0; i < count; ++i)
      handle(events[static_cast<std::size_t>(i)].data.u64,
             events[static_cast<std::size_t>(i)].events);
    if (Clock::now() - looked >= kLook)
      look_at_clock();
  }
}

void PlainPort::Impl::handle(std::uint64_t number, std::uint32_t events) {
  if (number == kWake)
    return;
  Lock lock(mutex);
  if (number < kFirstPeer) {
    Listener& listener = *listeners[number - kWake - 1];
    lock.unlock();
    return accept_from(listener);
  }
  const Peer peer = find(number);
  if (!peer)
    return;
  if ((events & EPOLLOUT) != 0)
    flush(lock, peer, kWrittenAtOnce);
  lock.unlock();
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
    read(peer);
}

void PlainPort::Impl::accept_from(Listener& listener) {
  for (;;) {
    if (peers.size() >= options.max_peers && !make_room())
      return pause_accepting();
    Descriptor socket(::accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      // Without free descriptors or memory, the connection waits in the kernel's queue.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        pause_accepting();
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO)
        continue;
      return;
    }
    if (!options.any_user && !is_own_user(peer_user(socket.number()))) {
      ++disconnected;
      return; // known peers get their turn before the next stranger
    }
    if (listener.is_tcp()) {
      const int on = 1;
      ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      ::setsockopt(socket.number(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
      ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes,
                   sizeof kUnsentBytes);
    }
    const std::uint64_t number = next_number++;
    epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
    if (::epoll_ctl(epoll.number(), EPOLL_CTL_ADD, socket.number(), &event) != 0)
      return pause_accepting();
    const auto peer = std::make_shared<PortPeer>(std::move(socket), number, options.limits);
    peer->events = EPOLLIN;
    has_unready = true;
    const Lock lock(mutex);
    peers.emplace(number, peer);
    queue(peer,
          std::make_shared<const PortMessage>(zmtp_hello(options.publishes ? "PUB" : "ROUTER")));
  }
}

/// Disconnects the oldest peer that has not sent a message although it has had time to.
bool PlainPort::Impl::make_room() {
  Peer longest;
  for (const auto& [number, peer] : peers)
    if (!peer->has_sent && (!longest || peer->came < longest->came))
      longest = peer;
  if (!longest || Clock::now() - longest->came < kHandshakeTime)
    return false;
  ++disconnected;
  leave(longest);
  return true;
}

void PlainPort::Impl::pause_accepting() {
  accepts = false;
  watch_listeners(false);
}

void PlainPort::Impl::watch_listeners(bool on) {
  const Lock lock(mutex);
  for (std::size_t i = 0; i < listeners.size(); ++i) {
    epoll_event event{.events = on ? static_cast<std::uint32_t>(EPOLLIN) : 0U,
                      .data = {.u64 = kWake + 1 + i}};
    ::epoll_ctl(epoll.number(), EPOLL_CTL_MOD, listeners[i]->number(), &event);
  }
}

void PlainPort::Impl::look_at_clock() {
  looked = Clock::now();
  if (!accepts)
    watch_listeners(accepts = true);
  if (!has_unready)
    return;
  has_unready = false;
  std::vector<Peer> late;
  for (const auto& [number, peer] : peers) {
    if (peer->reader.is_ready())
      continue;
    has_unready = true;
    if (looked - peer->came > kHandshakeTime)
      late.push_back(peer);
  }
  for (const Peer& peer : late)
    leave(peer);
}

void PlainPort::Impl::read(const Peer& peer) {
  for (std::size_t sum = 0; sum < kReadAtOnce;) {
    const std::span<std::byte> gap = peer->reader.gap();
    const std::span<std::byte> into = gap.empty() ? std::span(buffer) : gap;
    const ssize_t count = ::recv(peer->socket.number(), into.data(), into.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && errno == EAGAIN)
      return;
    if (count <= 0)
      return leave(peer);
    const auto bytes = static_cast<std::size_t>(count);
    sum += bytes;
    const std::size_t before = peer->reader.held_bytes();
    bool goes_on = false;
    try {
      goes_on = gap.empty() ? parse(peer, bytes) : take(peer, peer->reader.filled(bytes));
    } catch (const std::bad_alloc&) {
      ++disconnected;
    }
    unfinished_bytes += peer->reader.held_bytes() - before;
    if (!goes_on)
      return leave(peer);
    if (unfinished_bytes > options.max_unfinished_bytes)
      keep_to_unfinished_bytes();
    if (bytes < into.size() || (peer->events & EPOLLIN) == 0)
      return; // most likely nothing is left to read
  }
}

/// Returns false if the peer must be disconnected.
bool PlainPort::Impl::parse(const Peer& peer, std::size_t bytes) {
  std::span<const std::byte> left(buffer.data(), bytes);
  while (!left.empty())
    if (!take(peer, peer->reader.take(left)))
      return false;
  return true;
}

bool PlainPort::Impl::take(const Peer& peer, ZmtpReader::Event event) {
  switch (event) {
  case ZmtpReader::Event::nothing:
    if (peer->began == Clock::time_point() && peer->reader.held_bytes() > 0)
      peer->began = Clock::now();
    return true;
  case ZmtpReader::Event::command:
    take_command(peer);
    return true;
  case ZmtpReader::Event::message:
    peer->began = {};
    peer->has_sent = true;
    return deliver(peer, peer->reader.take_message());
  case ZmtpReader::Event::stranger:
    break;
  }
  ++disconnected;
  return false;
}

void PlainPort::Impl::take_command(const Peer& peer) {
  const std::string& command = peer->reader.command();
  const std::string ping("\4PING", 5);
  const std::string subscribe("\11SUBSCRIBE", 10);
  constexpr std::size_t kTimeToLive = 2; // bytes, before the context
  constexpr std::size_t kMostContext = 16;
  const Lock lock(mutex);
  if (command.starts_with(subscribe))
    peer->subscribed = true;
  if (!command.starts_with(ping) || command.size() < ping.size() + kTimeToLive
      || peer->unread.size() >= kMostUnread)
    return;
  const std::string pong =
      std::string("\4PONG", 5) + command.substr(ping.size() + kTimeToLive, kMostContext);
  std::vector<std::byte> raw;
  append_zmtp_head(raw, pong.size(), false, true);
  const auto bytes = std::as_bytes(std::span(pong));
  raw.insert(raw.end(), bytes.begin(), bytes.end());
  queue(peer, std::make_shared<const PortMessage>(std::move(raw)));
}

bool PlainPort::Impl::deliver(const Peer& peer, ZmtpMessage message) {
  const Lock lock(mutex);
  if (peer->doomed)
    return false;
  if (options.publishes) { // in ZMTP 3.0, subscriptions are messages
    if (!message.parts.empty() && message.parts[0].size() > 0
        && std::as_const(message.parts[0]).bytes()[0] == std::byte{1})
      peer->subscribed = true;
    return true;
  }
  const std::size_t cost = cost_of(message);
  if (turns.empty())
    ready.ring();
  if (peer->received.empty())
    turns.push_back(peer);
  peer->received.push_back(std::move(message));
  peer->received_bytes += cost;
  waiting_bytes += cost;
  if (!may_read(*peer, 1) && (peer->events & EPOLLIN) != 0) {
    watch(*peer, peer->events & ~EPOLLIN);
    paused.push_back(peer);
  }
  return true;
}

void PlainPort::Impl::keep_to_unfinished_bytes() {
  while (unfinished_bytes > options.max_unfinished_bytes) {
    Peer slowest;
    for (const auto& [number, peer] : peers)
      if (peer->reader.held_bytes() > 0 && (!slowest || peer->began < slowest->began))
        slowest = peer;
    if (!slowest)
      return;
    ++disconnected;
    leave(slowest);
  }
}

void PlainPort::Impl::leave(const Peer& peer) {
  ::epoll_ctl(epoll.number(), EPOLL_CTL_DEL, peer->socket.number(), nullptr);
  unfinished_bytes -= peer->reader.held_bytes();
  peer->reader = ZmtpReader(options.limits);
  const Lock lock(mutex);
  if (peers.erase(peer->number) == 0)
    return;
  peer->doomed = true;
  ::shutdown(peer->socket.number(), SHUT_RDWR);
  if (!peer->writing)
    forget_unread(*peer);
}

} // namespace troupe::env::wire
