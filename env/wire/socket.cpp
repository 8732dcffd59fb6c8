#include "env/wire/socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include <zmq.h>

namespace troupe::env::wire {

namespace {

constexpr std::size_t kHandshakeBytes = 1024; // the limit holds for ZeroMQ's own commands too
constexpr int kBacklogMessages = 1024;        // per peer, for sockets that may drop

int zmq_type(SocketType type) {
  switch (type) {
  case SocketType::dealer:
    return ZMQ_DEALER;
  case SocketType::router:
    return ZMQ_ROUTER;
  case SocketType::publisher:
    return ZMQ_PUB;
  case SocketType::subscriber:
    return ZMQ_SUB;
  }
  throw std::invalid_argument("socket type " + std::to_string(static_cast<int>(type))
                              + " is none of ours");
}

[[noreturn]] void fail(const std::string& what, const std::string& way_out = "") {
  throw std::runtime_error(what + ": " + zmq_strerror(zmq_errno()) + way_out);
}

template <typename T>
void set(void* socket, int option, T value) {
  if (zmq_setsockopt(socket, option, &value, sizeof value) != 0)
    fail("socket option " + std::to_string(option));
}

int send_backlog(SocketType type) {
  switch (type) {
  case SocketType::dealer:
    return 0; // no limit
  case SocketType::publisher:
    return 2; // what is newest by then matters, not what waits
  default:
    return kBacklogMessages;
  }
}

bool is_loopback(const std::string& endpoint) {
  for (const char* prefix :
       {"tcp://127.", "tcp://localhost:", "tcp://[::1]:", "inproc://", "ipc://"})
    if (endpoint.starts_with(prefix))
      return true;
  return false;
}

/// Rounded up, so that a wait does not end just before its deadline; at most a minute at a time.
long milliseconds_until(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::clamp<long>(static_cast<long>(left.count()), 0, 60'000);
}

/// Polls until one of `items` has its event; false at the deadline.
template <std::size_t N>
bool poll(std::array<zmq_pollitem_t, N>& items, int count, Deadline deadline) {
  for (;;) {
    const long wait = milliseconds_until(deadline);
    const int ready = zmq_poll(items.data(), count, wait);
    if (ready > 0)
      return true;
    if (ready < 0 && zmq_errno() != EINTR)
      fail("waiting for a message");
    if (std::chrono::steady_clock::now() >= deadline)
      return false;
  }
}

} // namespace

Socket::Socket(Context& context, SocketType type, const SocketOptions& options)
    : handle_(zmq_socket(context.handle(), zmq_type(type))), type_(type), options_(options) {
  if (handle_ == nullptr)
    fail("opening a socket");
  set(handle_, ZMQ_LINGER, 0);
  set(handle_, ZMQ_MAXMSGSIZE,
      static_cast<std::int64_t>(std::max(options.max_frame_bytes, kHandshakeBytes)));
  set(handle_, ZMQ_TCP_KEEPALIVE, 1);
  // What a dealer sends is bounded by its own window; a router drops what a peer does not read.
  set(handle_, ZMQ_SNDHWM, send_backlog(type));
  set(handle_, ZMQ_RCVHWM, kBacklogMessages);
  // Of a publisher it would hand every message to its first subscriber only (libzmq 4.3.4 moves it
  // there).
  if (options.keep_newest_only && type == SocketType::subscriber)
    set(handle_, ZMQ_CONFLATE, 1);
  if (type == SocketType::subscriber && zmq_setsockopt(handle_, ZMQ_SUBSCRIBE, "", 0) != 0)
    fail("subscribing");
}

Socket::~Socket() {
  if (handle_ != nullptr)
    zmq_close(handle_);
}

Socket::Socket(Socket&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      type_(other.type_),
      options_(other.options_) {}

std::string Socket::bind(const std::string& endpoint) {
  if (!options_.allow_other_hosts && !is_loopback(endpoint))
    throw std::invalid_argument("endpoint " + endpoint
                                + " is not of this host's loopback interface; bind to "
                                  "tcp://127.0.0.1:*, or allow other hosts explicitly");
  if (zmq_bind(handle_, endpoint.c_str()) != 0)
    fail("cannot bind " + endpoint,
         zmq_errno() == EADDRINUSE
             ? "; end the program that holds it (ss -ltnp shows it), choose another port, or let "
               "tcp://127.0.0.1:* find a free one"
             : "; the form is tcp://127.0.0.1:<port>, * for any free port");
  std::array<char, 1024> bound{};
  std::size_t size = bound.size();
  if (zmq_getsockopt(handle_, ZMQ_LAST_ENDPOINT, bound.data(), &size) != 0)
    fail("asking for the endpoint of " + endpoint);
  return bound.data();
}

void Socket::connect(const std::string& endpoint) {
  if (zmq_connect(handle_, endpoint.c_str()) != 0)
    fail("cannot connect to " + endpoint, "; the form is tcp://<host>:<port>");
}

bool Socket::send(Message&& message, Deadline deadline) {
  std::vector<Frame> parts;
  parts.reserve(2 + message.frames.size());
  const auto add = [&parts](const std::string& text) {
    parts.emplace_back(std::as_bytes(std::span(text)));
  };
  if (type_ == SocketType::router)
    add(message.peer);
  if (type_ == SocketType::router || type_ == SocketType::dealer)
    add(message.header);
  for (Frame& frame : message.frames)
    parts.push_back(std::move(frame));
  for (std::size_t i = 0; i < parts.size();) {
    const int flags = ZMQ_DONTWAIT | (i + 1 < parts.size() ? ZMQ_SNDMORE : 0);
    if (zmq_msg_send(static_cast<zmq_msg_t*>(parts[i].handle()), handle_, flags) >= 0) {
      ++i;
      continue;
    }
    if (zmq_errno() == EINTR)
      continue;
    if (zmq_errno() == EHOSTUNREACH)
      return false;
    if (zmq_errno() != EAGAIN)
      fail("sending");
    std::array<zmq_pollitem_t, 1> items{{{handle_, 0, ZMQ_POLLOUT, 0}}};
    if (i == 0 && !poll(items, 1, deadline))
      return false;
  }
  return true;
}

Socket::Received Socket::try_receive(Message& message) {
  message = {};
  const bool routed = type_ == SocketType::router;
  const bool headed = routed || type_ == SocketType::dealer;
  bool oversized = false;
  for (std::size_t i = 0;; ++i) {
    Frame frame;
    auto* part = static_cast<zmq_msg_t*>(frame.handle());
    while (zmq_msg_recv(part, handle_, ZMQ_DONTWAIT) < 0) {
      if (zmq_errno() == EAGAIN && i == 0)
        return Received::nothing;
      if (zmq_errno() != EINTR && zmq_errno() != EAGAIN)
        fail("receiving");
    }
    const bool more = zmq_msg_more(part) != 0;
    const auto bytes = std::as_const(frame).bytes();
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    if (routed && i == 0)
      message.peer.assign(text, bytes.size());
    else if (headed && i == (routed ? 1U : 0U)) {
      if (bytes.size() > options_.max_header_bytes)
        oversized = true;
      else
        message.header.assign(text, bytes.size());
    } else if (message.frames.size() == options_.max_frames
               || bytes.size() > options_.max_frame_bytes)
      oversized = true;
    else if (!oversized)
      message.frames.push_back(std::move(frame));
    if (!more)
      break;
  }
  if (oversized)
    message.frames.clear();
  return oversized ? Received::oversized : Received::message;
}

bool Socket::wait(Deadline deadline, int wake_fd) {
  std::array<zmq_pollitem_t, 2> items{
      {{handle_, 0, ZMQ_POLLIN, 0}, {nullptr, wake_fd, ZMQ_POLLIN, 0}}};
  return poll(items, wake_fd < 0 ? 1 : 2, deadline);
}

} // namespace troupe::env::wire
