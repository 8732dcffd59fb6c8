#include "env/remote/exchange.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/random.h>

namespace troupe::env::remote {

namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 100ms; // how often heartbeats are checked while waiting

/// Returns a random session number, unique across processes and hosts. It comes from the kernel,
/// because it does not affect any result.
std::uint64_t unique_number() {
  std::uint64_t number = 0;
  while (number == 0)
    if (getrandom(&number, sizeof number, 0) != sizeof number && errno != EINTR)
      throw std::runtime_error(std::string("getrandom: ") + std::strerror(errno));
  return number;
}

std::string milliseconds(Clock::duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count())
         + " ms";
}

} // namespace

Exchange::Exchange(wire::Context& context, const RemoteOptions& options)
    : options_(options),
      socket_(context, wire::SocketType::dealer,
              {.max_frame_bytes = std::max(options.max_message_bytes, kMaxHeader),
               .max_frames = 2,
               .max_header_bytes = kMaxHeader,
               .allow_other_hosts = options.allow_other_hosts,
               .client_keys = options.keys}),
      session_(unique_number()) {
  socket_.connect(options.endpoint);
}

void Exchange::watch(wire::Context& context, const Invitation& invitation) {
  if (!invitation.heartbeat)
    return;
  // Also stay within the peer's timeout.
  const auto interval = std::clamp(std::chrono::milliseconds(invitation.silence_milliseconds / 3),
                                   1ms, options_.heartbeat_interval);
  heartbeat_ = std::make_unique<Heartbeat>(
      context, heartbeat_endpoint(options_.endpoint, invitation.heartbeat_port), session_, interval,
      PeerOptions{.allow_other_hosts = options_.allow_other_hosts, .client_keys = options_.keys});
}

void Exchange::ask(message::Envelope question, std::vector<std::byte> frame) {
  question.set_protocol(kProtocol);
  question.set_session(session_);
  question.set_request(++request_);
  question.SerializeToString(&header_);
  frame_ = std::move(frame);
  with_frame_ = question.has_play() || question.has_load();
  send();
}

void Exchange::send() {
  wire::Message message;
  message.header = header_;
  if (with_frame_)
    message.frames.emplace_back(std::span<const std::byte>(frame_));
  socket_.send(std::move(message), Clock::now()); // a dealer queues it at once
}

bool Exchange::is_answer(const message::Envelope& header) const {
  if (header.session() != session_ || header.request() < request_)
    return false; // of an earlier question or session
  if (header.request() > request_)
    throw ProtocolError("it answers question " + std::to_string(header.request()) + " where only "
                        + std::to_string(request_) + " were asked");
  return true;
}

void Exchange::check_alive(Clock::time_point now) const {
  if (heartbeat_ && heartbeat_->silent_for(now) > options_.silence)
    throw ProtocolError(
        "no heartbeat for " + milliseconds(options_.silence)
        + " (silence): the peer has vanished; start it again, and the next reset will find it");
}

Exchange::Answer Exchange::wait(message::Envelope::BodyCase expected,
                                std::chrono::milliseconds patience, const std::string& what,
                                const char* key) {
  const auto begin = Clock::now();
  const auto deadline = begin + patience;
  auto interval = options_.retry_interval;
  auto retry = begin + interval;
  std::string full; // the peer's last refusal because too few environments are free
  for (;;) {
    Answer answer;
    const auto got = socket_.try_receive(answer.message);
    if (got == wire::Socket::Received::oversized)
      throw ProtocolError(
          "it sent a message that exceeds the limits: more than 2 data frames, or one of "
          "more than max_message_bytes");
    if (got == wire::Socket::Received::message) {
      answer.header = decode_header(answer.message);
      if (is_answer(answer.header)) {
        if (answer.header.body_case() == expected)
          return answer;
        if (!answer.header.has_refused())
          throw ProtocolError("it answered " + what + " with a message of kind "
                              + std::to_string(answer.header.body_case()) + ", not "
                              + std::to_string(expected));
        full = "it refused " + what + ": " + printable(answer.header.refused().message());
        if (answer.header.refused().reason() != message::Refused::FULL)
          throw ProtocolError(full);
        interval = options_.retry_interval;
        retry = Clock::now() + interval;
      }
    }
    const auto now = Clock::now();
    if (now >= deadline && !full.empty())
      throw ProtocolError(full);
    if (now >= deadline)
      throw ProtocolError(
          "no answer to " + what + " within " + milliseconds(patience) + " (" + key + ")"
          + (heartbeat_ ? ", although its heartbeats arrive: it has stalled, or is too slow" : ""));
    check_alive(now);
    if (now >= retry) {
      send();
      interval *= 2;
      retry = now + interval;
    }
    if (got == wire::Socket::Received::nothing)
      socket_.wait(std::min({deadline, retry, now + kLook}));
  }
}

} // namespace troupe::env::remote
