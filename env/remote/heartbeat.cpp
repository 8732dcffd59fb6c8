#include "env/remote/heartbeat.hpp"

#include <algorithm>

#include "env/remote/protocol.hpp"

namespace troupe::env::remote {

namespace {

using namespace std::chrono_literals;

constexpr int kMostUnanswered = 1000; // maximum pings queued for a peer that does not read them
constexpr int kMostAtOnce = 1000;     // maximum messages handled before the clock is checked
constexpr auto kNap = 1s;

wire::SocketOptions small_messages(const PeerOptions& peer) {
  return {.max_frame_bytes = 4096,
          .max_frames = 0,
          .max_header_bytes = 4096,
          .allow_other_hosts = peer.allow_other_hosts,
          .server_keys = peer.server_keys,
          .client_keys = peer.client_keys};
}

} // namespace

Heartbeat::Heartbeat(wire::Context& context, const std::string& endpoint, std::uint64_t session,
                     std::chrono::milliseconds interval, const PeerOptions& peer)
    : socket_(context, wire::SocketType::dealer, small_messages(peer)),
      session_(session),
      last_pong_(Clock::now().time_since_epoch().count()) {
  socket_.connect(endpoint);
  thread_ = std::jthread([this, interval](const std::stop_token& stop) { run(stop, interval); });
}

Heartbeat::~Heartbeat() {
  thread_.request_stop();
  wake_.ring();
}

Clock::duration Heartbeat::silent_for(Clock::time_point now) const {
  return now - Clock::time_point(Clock::duration(last_pong_.load()));
}

void Heartbeat::take_in() {
  wire::Message message;
  for (int i = 0; i < kMostAtOnce; ++i) {
    const auto got = socket_.try_receive(message);
    if (got == wire::Socket::Received::nothing)
      return;
    message::Envelope envelope;
    if (got == wire::Socket::Received::message && envelope.ParseFromString(message.header)
        && envelope.protocol() == kProtocol && envelope.session() == session_
        && envelope.has_pong())
      last_pong_ = Clock::now().time_since_epoch().count();
  }
}

void Heartbeat::run(const std::stop_token& stop, std::chrono::milliseconds interval) {
  message::Envelope ping;
  ping.set_protocol(kProtocol);
  ping.set_session(session_);
  ping.mutable_ping();
  int unanswered = 0;
  auto next = Clock::now();
  auto answered = last_pong_.load();
  while (!stop.stop_requested()) {
    const auto now = Clock::now();
    if (now >= next) {
      if (unanswered++ < kMostUnanswered)
        socket_.send(encode(ping), now);
      next = now + interval;
    }
    socket_.wait(next, wake_.descriptor());
    take_in();
    if (last_pong_.load() != answered) {
      answered = last_pong_.load();
      unanswered = 0;
    }
  }
}

HeartbeatAnswers::HeartbeatAnswers(wire::Context& context, const std::string& endpoint,
                                   const PeerOptions& peer,
                                   std::function<bool(std::uint64_t session)> seen)
    : socket_(context, wire::SocketType::router, small_messages(peer)),
      endpoint_(socket_.bind(endpoint)),
      seen_(std::move(seen)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

HeartbeatAnswers::~HeartbeatAnswers() {
  thread_.request_stop();
  wake_.ring();
}

std::uint16_t HeartbeatAnswers::port() const {
  if (endpoint_.starts_with("ipc://"))
    return 0;
  return static_cast<std::uint16_t>(std::stoi(endpoint_.substr(endpoint_.rfind(':') + 1)));
}

void HeartbeatAnswers::run(const std::stop_token& stop) {
  wire::Message message;
  while (!stop.stop_requested()) {
    const auto got = socket_.try_receive(message);
    if (got == wire::Socket::Received::nothing) {
      socket_.wait(Clock::now() + kNap, wake_.descriptor());
      continue;
    }
    message::Envelope envelope;
    if (got != wire::Socket::Received::message || !envelope.ParseFromString(message.header)
        || envelope.protocol() != kProtocol || !envelope.has_ping() || !seen_(envelope.session()))
      continue;
    envelope.mutable_pong();
    wire::Message answer = encode(envelope);
    answer.peer = std::move(message.peer);
    socket_.send(std::move(answer), Clock::now());
  }
}

} // namespace troupe::env::remote
