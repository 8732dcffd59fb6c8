#include "env/wire/socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <stdexcept>
#include <utility>

#include <zmq.h>

#include "env/wire/deployment_keys.hpp"
#include "env/wire/plain_port.hpp"
#include "env/wire/sharing.hpp"
#include "env/wire/zap_handler.hpp"
#include "env/wire/zeromq.hpp"

namespace troupe::env::wire {

namespace {

constexpr int kHandshakeMilliseconds = 10'000;    // an unfinished handshake is then disconnected
constexpr int kBacklogMessages = 1024;            // per peer, for sockets that may drop messages
constexpr std::size_t kLeastPartBytes = 64 << 10; // allowed for any part, as for control parts

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
                              + " is unknown");
}

using zeromq::fail;
using zeromq::set;

int send_backlog(SocketType type) {
  switch (type) {
  case SocketType::dealer:
    return 0; // no limit
  case SocketType::publisher:
    return 2; // only the newest message matters
  default:
    return kBacklogMessages;
  }
}

/// Rounds up, so that a wait does not end just before its deadline; at most a minute at a time.
long milliseconds_until(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::clamp<long>(static_cast<long>(left.count()), 0, 60'000);
}

/// Returns the frame in the form that ZeroMQ sends. Shared memory is kept alive until it is sent.
zmq_msg_t* sendable(Frame& frame) {
  if (const auto block = frame.shared_block())
    frame = Frame::view(block->bytes(), block);
  return static_cast<zmq_msg_t*>(frame.handle());
}

/// Polls until one of `items` has its event. Returns false at the deadline.
bool poll(std::span<zmq_pollitem_t> items, Deadline deadline) {
  for (;;) {
    const long wait = milliseconds_until(deadline);
    const int ready = zmq_poll(items.data(), static_cast<int>(items.size()), wait);
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
    : context_(&context),
      handle_(zmq_socket(context.handle(), zmq_type(type))),
      type_(type),
      options_(options) {
  if (handle_ == nullptr)
    fail("opening a socket");
  try {
    set(handle_, ZMQ_LINGER, 0);
    limit_frames(has_own_keys());
    set(handle_, ZMQ_TCP_KEEPALIVE, 1);
    set(handle_, ZMQ_HANDSHAKE_IVL, kHandshakeMilliseconds);
    // A dealer limits what it sends by its window; a router drops what a peer does not read.
    set(handle_, ZMQ_SNDHWM, send_backlog(type));
    set(handle_, ZMQ_RCVHWM, kBacklogMessages);
    // On a publisher this would serve only the first subscriber (libzmq 4.3.4 moves the message).
    if (options.keep_newest_only && type == SocketType::subscriber)
      set(handle_, ZMQ_CONFLATE, 1);
    if (type == SocketType::subscriber)
      set(handle_, ZMQ_SUBSCRIBE, std::string());
    if (options.shared_memory && is_headed())
      sharing_ = std::make_unique<Sharing>(*options.shared_memory, is_routed());
    set_keys();
  } catch (...) {
    zmq_close(handle_);
    throw;
  }
}

Socket::~Socket() {
  if (admission_)
    admission_->forget();
  if (handle_ != nullptr)
    zmq_close(handle_);
}

Socket::Socket(Socket&& other) noexcept
    : context_(other.context_),
      handle_(std::exchange(other.handle_, nullptr)),
      type_(other.type_),
      options_(std::move(other.options_)),
      port_(std::move(other.port_)),
      uses_zeromq_(other.uses_zeromq_),
      sharing_(std::move(other.sharing_)),
      admission_(std::move(other.admission_)),
      connections_(other.connections_),
      waiting_(std::move(other.waiting_)) {}

std::string Socket::bind(const std::string& endpoint) {
  if (options_.client_keys)
    throw std::invalid_argument("cannot bind " + endpoint
                                + " with client_keys: a socket that binds takes server_keys");
  const std::optional<std::string> server_key = use_keys_to_bind(endpoint);
  if (!is_routed())
    sharing_.reset(); // with several peers, the receiver of a message is unknown
  if (!server_key && !endpoint.starts_with("inproc://")
      && (is_routed() || type_ == SocketType::publisher))
    return bind_port(endpoint);
  uses_zeromq_ = true;
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
  return server_key.value_or("").empty() ? std::string(bound.data())
                                         : with_server_key(bound.data(), *server_key);
}

std::string Socket::bind_port(const std::string& endpoint) {
  if (!port_) {
    constexpr std::size_t kSmallParts = 2; // the header and the control part in front of it
    const std::size_t most =
        std::max({options_.max_frame_bytes, options_.max_header_bytes, kLeastPartBytes});
    PortOptions made{.limits = {.max_part_bytes = most,
                                .max_parts = options_.max_frames + kSmallParts,
                                .max_message_bytes = std::max(options_.max_message_bytes,
                                                              most + options_.max_header_bytes)},
                     .publishes = type_ == SocketType::publisher,
                     .any_user = options_.allow_other_hosts};
    const std::size_t message = made.limits.max_message_bytes;
    made.max_unfinished_bytes = std::max(made.max_unfinished_bytes, 2 * message);
    made.max_waiting_bytes = std::max(made.max_waiting_bytes, 2 * message);
    made.max_unread_bytes = std::max(made.max_unread_bytes, 2 * message);
    port_ = std::make_unique<PlainPort>(made);
  }
  return port_->bind(endpoint);
}

void Socket::connect(const std::string& endpoint) {
  if (options_.server_keys)
    throw std::invalid_argument("cannot connect to " + endpoint
                                + " with server_keys: a socket that connects takes client_keys");
  const std::string address = use_keys_to_connect(endpoint);
  uses_zeromq_ = true;
  if (zmq_connect(handle_, address.c_str()) != 0)
    fail("cannot connect to " + endpoint, "; the form is tcp://<host>:<port>");
  // Within a process frames travel as pointers; with several servers, any of them may get a
  // message.
  if (++connections_ > 1 || endpoint.starts_with("inproc://"))
    sharing_.reset();
  greet();
}

void Socket::greet() {
  const auto control = sharing_ ? sharing_->greeting(std::chrono::steady_clock::now())
                                : std::optional<std::string>();
  if (control)
    say("", *control);
}

/// Sends a control part alone, or drops it if it cannot be sent at once.
void Socket::say(const std::string& peer, const std::string& control) {
  std::vector<Frame> parts;
  if (is_routed())
    parts.emplace_back(std::as_bytes(std::span(peer)));
  parts.emplace_back(std::as_bytes(std::span(control)));
  send_parts(parts, {});
}

Frame Socket::frame(std::size_t size, const std::string& peer) {
  if (sharing_)
    if (auto block = sharing_->allocate(peer, size))
      return Frame::shared(std::move(block));
  return Frame(size);
}

bool Socket::send(Message&& message, Deadline deadline) {
  greet();
  const std::string shared = sharing_ ? sharing_->move_out(message.peer, message.frames) : "";
  std::vector<Frame> parts;
  parts.reserve(3 + message.frames.size());
  const auto add = [&parts](const std::string& text) {
    parts.emplace_back(std::as_bytes(std::span(text)));
  };
  if (is_routed())
    add(message.peer);
  if (!shared.empty())
    add(shared);
  else if (is_headed() && is_control(message.header))
    add(encode(Control{}));
  if (is_headed())
    add(message.header);
  for (Frame& frame : message.frames)
    parts.push_back(std::move(frame));
  return send_parts(parts, deadline);
}

bool Socket::send_parts(std::vector<Frame>& parts, Deadline deadline) {
  const auto sent_by_port = [&] {
    for (Frame& part : parts)
      sendable(part);
    return std::move(parts);
  };
  if (port_ && type_ == SocketType::publisher) {
    if (!uses_zeromq_) {
      port_->publish(sent_by_port());
      return true;
    }
    std::vector<Frame> copies; // for the rare socket that publishes at both
    for (const Frame& part : parts)
      copies.emplace_back(part.bytes());
    port_->publish(std::move(copies));
  } else if (port_) {
    const auto peer = std::as_const(parts.front()).bytes();
    const std::string name(reinterpret_cast<const char*>(peer.data()), peer.size());
    if (port_->is_peer(name)) {
      parts.erase(parts.begin());
      return port_->send(name, sent_by_port());
    }
    if (!uses_zeromq_)
      return true; // the peer has left
  }
  for (std::size_t i = 0; i < parts.size();) {
    const int flags = ZMQ_DONTWAIT | (i + 1 < parts.size() ? ZMQ_SNDMORE : 0);
    if (zmq_msg_send(sendable(parts[i]), handle_, flags) >= 0) {
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
    if (i == 0 && !poll(items, deadline))
      return false;
  }
  return true;
}

bool Socket::wait(Deadline deadline, int wake_fd) {
  // Poll items: first the sources of messages, then the others; an absent one is -1.
  std::vector<zmq_pollitem_t> items;
  if (uses_zeromq_ || !port_)
    items.push_back({handle_, 0, ZMQ_POLLIN, 0});
  if (port_)
    items.push_back({nullptr, port_->descriptor(), ZMQ_POLLIN, 0});
  const std::size_t sources = items.size();
  if (wake_fd >= 0)
    items.push_back({nullptr, wake_fd, ZMQ_POLLIN, 0});
  if (sharing_)
    items.push_back({nullptr, sharing_->descriptor(), ZMQ_POLLIN, 0});
  const auto is_ready = [](const zmq_pollitem_t& item) { return item.revents != 0; };
  while (!waiting_) {
    if (!poll(items, deadline))
      return false;
    if (std::any_of(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(sources),
                    is_ready)) {
      Message message;
      const Received kind = receive(message);
      if (kind != Received::nothing)
        waiting_.emplace(kind, std::move(message));
    }
    if (wake_fd >= 0 && is_ready(items[sources]))
      return true;
    if (sharing_ && is_ready(items.back()))
      sharing_->pump();
  }
  return true;
}

SharedCounters Socket::shared_counters() const {
  return sharing_ ? sharing_->counters() : SharedCounters{};
}

std::int64_t Socket::strangers() const {
  return admission_ ? admission_->strangers.load() : 0;
}

std::int64_t Socket::disconnected() const {
  return port_ ? port_->disconnected() : 0;
}

} // namespace troupe::env::wire
