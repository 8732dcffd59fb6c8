// Receives messages.
#include <cerrno>
#include <chrono>
#include <utility>

#include <zmq.h>

#include "env/wire/plain_port.hpp"
#include "env/wire/sharing.hpp"
#include "env/wire/socket.hpp"
#include "env/wire/zeromq.hpp"

namespace troupe::env::wire {

/// A message whose parts are still arriving.
struct Socket::Arrived {
  Message message;
  Received kind = Received::message;
  std::string control; // the part in front of the header, if any
  std::size_t parts = 0;
};

Socket::Received Socket::try_receive(Message& message) {
  if (!waiting_)
    return receive(message);
  const Received kind = waiting_->first;
  message = std::move(waiting_->second);
  waiting_.reset();
  return kind;
}

/// Receives the next message for the owner, and handles control parts on the way.
Socket::Received Socket::receive(Message& message) {
  for (;;) {
    Arrived arrived;
    if (!receive_parts(arrived)) {
      if (sharing_) {
        sharing_->sweep(std::chrono::steady_clock::now());
        sharing_->pump();
      }
      message = {};
      return Received::nothing;
    }
    if (!arrived.control.empty() && !unpack(arrived))
      continue;
    if (arrived.kind == Received::oversized)
      arrived.message.frames.clear();
    message = std::move(arrived.message);
    return arrived.kind;
  }
}

bool Socket::receive_parts(Arrived& arrived) {
  if (port_ && receive_from_port(arrived))
    return true;
  if (port_ && !uses_zeromq_)
    return false;
  for (bool more = true; more;) {
    Frame frame;
    auto* part = static_cast<zmq_msg_t*>(frame.handle());
    while (zmq_msg_recv(part, handle_, ZMQ_DONTWAIT) < 0) {
      if (zmq_errno() == EAGAIN && arrived.parts == 0)
        return false;
      if (zmq_errno() != EINTR && zmq_errno() != EAGAIN)
        zeromq::fail("receiving");
    }
    more = zmq_msg_more(part) != 0;
    take_part(arrived, std::move(frame));
  }
  return true;
}

bool Socket::receive_from_port(Arrived& arrived) {
  std::optional<PlainPort::Received> got = port_->try_receive();
  if (!got)
    return false;
  arrived.message.peer = std::move(got->peer);
  arrived.parts = 1;
  for (Frame& frame : got->message.parts)
    take_part(arrived, std::move(frame));
  if (got->message.cut)
    arrived.kind = Received::oversized;
  return true;
}

void Socket::take_part(Arrived& arrived, Frame&& frame) {
  Message& message = arrived.message;
  const std::size_t place = arrived.parts++;
  // Index of the header: after the peer and the control part, if any.
  const std::size_t header = (is_routed() ? 1U : 0U) + (arrived.control.empty() ? 0U : 1U);
  const auto bytes = std::as_const(frame).bytes();
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  if (is_routed() && place == 0)
    message.peer.assign(text, bytes.size());
  else if (is_headed() && place == header) {
    if (arrived.control.empty() && is_control(bytes))
      arrived.control.assign(text, bytes.size());
    else if (bytes.size() > options_.max_header_bytes)
      arrived.kind = Received::oversized;
    else
      message.header.assign(text, bytes.size());
  } else if (message.frames.size() == options_.max_frames
             || bytes.size() > options_.max_frame_bytes)
    arrived.kind = Received::oversized;
  else if (arrived.kind == Received::message)
    message.frames.push_back(std::move(frame));
}

/// Handles the control part. Returns false if no message follows it.
bool Socket::unpack(Arrived& arrived) {
  const auto control = decode_control(std::as_bytes(std::span(arrived.control)));
  const bool alone = arrived.parts == (is_routed() ? 2U : 1U);
  if (!control || alone != (control->kind != Control::Kind::frames))
    return false;
  if (alone) {
    const auto answer =
        sharing_ ? sharing_->answer(*control, arrived.message.peer) : std::optional<std::string>();
    if (answer)
      say(arrived.message.peer, *answer);
    return false;
  }
  if (control->token == Token{})
    return true;
  std::vector<Frame>& frames = arrived.message.frames;
  if (frames.size() + control->references.size() > options_.max_frames)
    arrived.kind = Received::oversized;
  for (const Reference& reference : control->references)
    if (reference.size > options_.max_frame_bytes)
      arrived.kind = Received::oversized;
  return sharing_ && sharing_->move_in(*control, arrived.message.peer, frames);
}

} // namespace troupe::env::wire
