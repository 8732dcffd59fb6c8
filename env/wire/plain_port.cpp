#include "env/wire/plain_port.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <sys/epoll.h>
#include <sys/socket.h>

#include "env/wire/plain_port_impl.hpp"

namespace troupe::env::wire {

namespace {

constexpr std::size_t kMostPieces = 64; // per system call
constexpr char kPeerPrefix = '\1';      // names made by libzmq begin with a zero byte
constexpr std::size_t kPeerBytes = 1 + sizeof(std::uint64_t);

std::string name_of(std::uint64_t number) {
  std::string name(kPeerBytes, kPeerPrefix);
  std::memcpy(name.data() + 1, &number, sizeof number);
  return name;
}

std::uint64_t number_of(const std::string& peer) {
  std::uint64_t number = 0;
  std::memcpy(&number, peer.data() + 1, sizeof number);
  return number;
}

} // namespace

PlainPort::Impl::Impl(const PortOptions& o)
    : options(o),
      epoll(::epoll_create1(EPOLL_CLOEXEC)),
      next_number(kFirstPeer),
      buffer(kBufferBytes) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWake}};
  if (!epoll || ::epoll_ctl(epoll.number(), EPOLL_CTL_ADD, wake.descriptor(), &event) != 0)
    throw std::runtime_error(std::string("epoll: ") + std::strerror(errno));
  thread = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

PlainPort::Impl::~Impl() {
  thread.request_stop();
  wake.ring();
  thread.join();
}

PlainPort::Impl::Peer PlainPort::Impl::find(std::uint64_t number) const {
  const auto at = peers.find(number);
  return at == peers.end() ? nullptr : at->second;
}

/// Sets the events that epoll reports for the peer.
void PlainPort::Impl::watch(PortPeer& peer, std::uint32_t events) {
  if (peer.events == events || peer.doomed)
    return;
  peer.events = events;
  epoll_event event{.events = events, .data = {.u64 = peer.number}};
  ::epoll_ctl(epoll.number(), EPOLL_CTL_MOD, peer.socket.number(), &event);
}

/// The thread then finds that the connection has ended.
void PlainPort::Impl::disconnect(PortPeer& peer) {
  if (peer.doomed)
    return;
  watch(peer, EPOLLIN);
  peer.doomed = true;
  ::shutdown(peer.socket.number(), SHUT_RDWR);
  if (!peer.writing)
    forget_unread(peer);
}

void PlainPort::Impl::forget_unread(PortPeer& peer) {
  unread_bytes -= peer.unread_bytes;
  peer.unread_bytes = 0;
  peer.unread.clear();
}

void PlainPort::Impl::keep_to_unread_bytes(const Peer& newest) {
  while (unread_bytes > options.max_unread_bytes) {
    Peer most;
    for (const auto& [number, peer] : peers) // the newest message alone may exceed the limit
      if (!peer->doomed && !peer->unread.empty() && (peer != newest || peer->unread.size() > 1)
          && (!most || peer->unread_bytes > most->unread_bytes))
        most = peer;
    if (!most)
      return;
    ++disconnected;
    disconnect(*most);
    if (most->writing) // that thread is about to drop its messages
      return;
  }
}

void PlainPort::Impl::queue(const Peer& peer, std::shared_ptr<const PortMessage> message) {
  const std::size_t bytes = message->bytes;
  unread_bytes += bytes;
  peer->unread_bytes += bytes;
  peer->unread.push_back(std::move(message));
  keep_to_unread_bytes(peer);
  // Leaves the writing to the thread, which combines many messages: a system call for each costs
  // far more.
  watch(*peer, peer->events | EPOLLOUT);
}

/// Writes about `most` bytes, and releases the mutex while it does. The thread writes the rest.
void PlainPort::Impl::flush(Lock& lock, const Peer& peer, std::size_t most) {
  if (peer->writing)
    return;
  peer->writing = true;
  std::array<iovec, kMostPieces> pieces;
  for (std::size_t written = 0; written < most && !peer->unread.empty() && !peer->doomed;) {
    msghdr header{};
    header.msg_iov = pieces.data();
    std::size_t piece = peer->piece;
    std::size_t offset = peer->offset;
    // A publisher may replace all messages but the first.
    const std::size_t messages = options.publishes ? 1 : peer->unread.size();
    for (std::size_t i = 0; i < messages && header.msg_iovlen < kMostPieces; ++i, piece = 0)
      for (; piece < peer->unread[i]->pieces.size() && header.msg_iovlen < kMostPieces;
           ++piece, offset = 0) {
        const iovec& from = peer->unread[i]->pieces[piece];
        pieces[header.msg_iovlen++] = {static_cast<std::byte*>(from.iov_base) + offset,
                                       from.iov_len - offset};
      }
    lock.unlock();
    const ssize_t count = ::sendmsg(peer->socket.number(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    const int error = errno;
    lock.lock();
    if (count >= 0) {
      written += static_cast<std::size_t>(count);
      wrote(*peer, static_cast<std::size_t>(count));
    } else if (error == EAGAIN) {
      break;
    } else if (error != EINTR) {
      peer->writing = false;
      return disconnect(*peer);
    }
  }
  peer->writing = false;
  if (peer->doomed)
    return forget_unread(*peer);
  watch(*peer, peer->unread.empty() ? peer->events & ~EPOLLOUT : peer->events | EPOLLOUT);
  read_again(peer, waiting_bytes);
}

void PlainPort::Impl::wrote(PortPeer& peer, std::size_t bytes) {
  while (bytes > 0) {
    const PortMessage& message = *peer.unread.front();
    const std::size_t left = message.pieces[peer.piece].iov_len - peer.offset;
    peer.offset += std::min(bytes, left);
    if (bytes < left)
      return;
    bytes -= left;
    peer.offset = 0;
    if (++peer.piece < message.pieces.size())
      continue;
    peer.piece = 0;
    unread_bytes -= message.bytes;
    peer.unread_bytes -= message.bytes;
    peer.unread.pop_front();
  }
}

/// Whether the port may read from the peer: the peer and the port must use no more than 1/`part` of
/// their limits. The port does not read from a peer that does not read its answers, because
/// answering it would be wasted work. Messages that wait for the owner count as their answers.
bool PlainPort::Impl::may_read(const PortPeer& peer, std::size_t part) const {
  const std::size_t answers = options.publishes ? 0 : peer.unread.size();
  return peer.received.size() + answers < kMostMessages / part && answers < kMostMessages / 2 / part
         && peer.received_bytes < options.limits.max_message_bytes / part
         && waiting_bytes < options.max_waiting_bytes / part;
}

/// Resumes reading from paused peers. Call it after a message was taken or written.
void PlainPort::Impl::read_again(const Peer& taken, std::size_t waiting_before) {
  const std::size_t half = options.max_waiting_bytes / 2;
  const bool all = waiting_before >= half && waiting_bytes < half;
  if (paused.empty() || (!all && !may_read(*taken, 2)))
    return;
  std::erase_if(paused, [&](const Peer& peer) {
    if ((!all && peer != taken) || !may_read(*peer, 2))
      return peer->doomed;
    watch(*peer, peer->events | EPOLLIN);
    return true;
  });
}

PlainPort::PlainPort(const PortOptions& options) : impl_(std::make_unique<Impl>(options)) {}

PlainPort::~PlainPort() = default;

std::string PlainPort::bind(const std::string& endpoint) {
  auto listener = std::make_unique<Listener>(endpoint);
  const std::string bound = listener->endpoint();
  const Impl::Lock lock(impl_->mutex);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWake + 1 + impl_->listeners.size()}};
  if (event.data.u64 >= kFirstPeer
      || ::epoll_ctl(impl_->epoll.number(), EPOLL_CTL_ADD, listener->number(), &event) != 0)
    throw std::runtime_error("cannot bind " + endpoint + ": " + std::strerror(errno));
  impl_->listeners.push_back(std::move(listener));
  return bound;
}

std::optional<PlainPort::Received> PlainPort::try_receive() {
  const Impl::Lock lock(impl_->mutex);
  if (impl_->turns.empty())
    return std::nullopt;
  const Impl::Peer peer = std::move(impl_->turns.front());
  impl_->turns.pop_front();
  Received taken{name_of(peer->number), std::move(peer->received.front())};
  peer->received.pop_front();
  const std::size_t cost = cost_of(taken.message);
  const std::size_t before = std::exchange(impl_->waiting_bytes, impl_->waiting_bytes - cost);
  peer->received_bytes -= cost;
  if (!peer->received.empty())
    impl_->turns.push_back(peer);
  impl_->read_again(peer, before);
  if (impl_->turns.empty())
    impl_->ready.silence();
  return taken;
}

int PlainPort::descriptor() const {
  return impl_->ready.descriptor();
}

bool PlainPort::is_peer(const std::string& peer) const {
  return peer.size() == kPeerBytes && peer[0] == kPeerPrefix;
}

bool PlainPort::send(const std::string& peer, std::vector<Frame> parts) {
  auto message = std::make_shared<const PortMessage>(std::move(parts));
  const Impl::Lock lock(impl_->mutex);
  const Impl::Peer to = impl_->find(number_of(peer));
  if (!to || to->doomed)
    return false;
  if (to->unread.size() < kMostUnread)
    impl_->queue(to, std::move(message));
  return true;
}

void PlainPort::publish(std::vector<Frame> parts) {
  const auto message = std::make_shared<const PortMessage>(std::move(parts));
  const Impl::Lock lock(impl_->mutex);
  std::vector<Impl::Peer> subscribers;
  for (const auto& [number, peer] : impl_->peers)
    if (peer->subscribed && !peer->doomed)
      subscribers.push_back(peer);
  for (const Impl::Peer& peer : subscribers) {
    const bool begun = peer->writing || peer->piece > 0 || peer->offset > 0;
    for (std::size_t i = peer->unread.size(); i > (begun ? 1U : 0U); --i) {
      const auto at = peer->unread.begin() + static_cast<std::ptrdiff_t>(i - 1);
      if ((*at)->parts.empty()) // bytes of the protocol itself
        continue;
      impl_->unread_bytes -= (*at)->bytes;
      peer->unread_bytes -= (*at)->bytes;
      peer->unread.erase(at);
    }
    impl_->queue(peer, message);
  }
}

std::int64_t PlainPort::disconnected() const {
  return impl_->disconnected;
}

} // namespace troupe::env::wire
