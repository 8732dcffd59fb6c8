#include "env/wire/zap_handler.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <zmq.h>

namespace troupe::env::wire {

namespace {

constexpr const char* kQuestions = "inproc://zeromq.zap.01"; // where ZeroMQ sends requests
constexpr long kNap = 60'000;                                // milliseconds
constexpr int kFailures = ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL
                          | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_MONITOR_STOPPED;

[[noreturn]] void fail_zap(const std::string& what) {
  throw std::runtime_error("guarding encrypted sockets: " + what + ": "
                           + zmq_strerror(zmq_errno()));
}

/// Returns all parts of a message; empty if there is no message.
std::vector<std::string> take_message(void* socket) {
  std::vector<std::string> parts;
  int more = 1;
  while (more != 0) {
    zmq_msg_t part;
    zmq_msg_init(&part);
    if (zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) < 0) {
      zmq_msg_close(&part);
      return {};
    }
    parts.emplace_back(static_cast<const char*>(zmq_msg_data(&part)), zmq_msg_size(&part));
    more = zmq_msg_more(&part);
    zmq_msg_close(&part);
  }
  return parts;
}

std::string key_text(const std::string& credentials) {
  std::array<char, 41> text{};
  if (credentials.size() != 32
      || zmq_z85_encode(text.data(), reinterpret_cast<const std::uint8_t*>(credentials.data()), 32)
             == nullptr)
    return {};
  return text.data();
}

} // namespace

ZapHandler::ZapHandler(void* zeromq_context)
    : context_(zeromq_context), questions_(zmq_socket(zeromq_context, ZMQ_REP)) {
  if (questions_ == nullptr || zmq_bind(questions_, kQuestions) != 0) {
    const int cause = zmq_errno();
    if (questions_ != nullptr)
      zmq_close(questions_);
    errno = cause;
    fail_zap("the key handler");
  }
  const int linger = 0;
  zmq_setsockopt(questions_, ZMQ_LINGER, &linger, sizeof linger);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

ZapHandler::~ZapHandler() {
  thread_.request_stop();
  bell_.ring();
  thread_.join();
  zmq_close(questions_);
  for (const Watched& watched : arrived_)
    zmq_close(watched.events);
}

std::shared_ptr<Admission> ZapHandler::guard(void* socket, std::set<std::string> allowed,
                                             std::function<void(const std::string&)> on_stranger) {
  auto admission = std::make_shared<Admission>();
  admission->allowed = std::move(allowed);
  admission->on_stranger = std::move(on_stranger);
  const std::lock_guard lock(mutex_);
  admission->domain = "troupe-" + std::to_string(next_++);
  const std::string events = "inproc://events-of-" + admission->domain;
  // Connect at once: ZeroMQ's thread would block on events without a reader.
  if (zmq_socket_monitor(socket, events.c_str(), kFailures) != 0)
    fail_zap("watching a socket");
  void* pair = zmq_socket(context_, ZMQ_PAIR);
  if (pair == nullptr || zmq_connect(pair, events.c_str()) != 0) {
    if (pair != nullptr)
      zmq_close(pair);
    fail_zap("watching a socket");
  }
  const int linger = 0;
  zmq_setsockopt(pair, ZMQ_LINGER, &linger, sizeof linger);
  std::erase_if(by_domain_, [](const auto& entry) { return entry.second.expired(); });
  by_domain_[admission->domain] = admission;
  arrived_.push_back({pair, admission});
  bell_.ring();
  return admission;
}

void Admission::tell(const std::string& who) {
  const std::lock_guard lock(mutex);
  if (on_stranger)
    on_stranger(who);
  on_stranger = nullptr;
}

void Admission::forget() {
  const std::lock_guard lock(mutex);
  on_stranger = nullptr;
}

void ZapHandler::answer_question() {
  const auto question = take_message(questions_);
  if (question.empty())
    return;
  // version, request, domain, address, identity, mechanism, credentials
  const bool sound = question.size() == 7 && question[0] == "1.0" && question[5] == "CURVE";
  const std::string key = sound ? key_text(question[6]) : "";
  std::shared_ptr<Admission> admission;
  if (sound) {
    const std::lock_guard lock(mutex_);
    if (const auto at = by_domain_.find(question[2]); at != by_domain_.end())
      admission = at->second.lock();
  }
  const bool plain = question.size() == 6 && question[2] == kPlainDomain && question[5] == "NULL";
  const bool allowed = plain || (admission && admission->allowed.contains(key));
  const std::array<std::string, 6> answer{"1.0",
                                          question.size() > 1 ? question[1] : "",
                                          allowed ? "200" : "400",
                                          allowed ? "OK" : "this key is not allowed",
                                          allowed ? key : "",
                                          ""};
  for (std::size_t i = 0; i < answer.size(); ++i)
    zmq_send(questions_, answer[i].data(), answer[i].size(),
             i + 1 < answer.size() ? ZMQ_SNDMORE : 0);
  if (admission && !allowed)
    admission->tell("a peer at " + question[3] + " with the key " + key
                    + ", which is not an allowed key");
}

bool ZapHandler::take_event(const Watched& watched) {
  const auto event = take_message(watched.events);
  std::uint16_t kind = 0;
  if (event.size() < 2 || event[0].size() < sizeof kind)
    return true;
  std::memcpy(&kind, event[0].data(), sizeof kind);
  if (kind == ZMQ_EVENT_MONITOR_STOPPED)
    return false;
  ++watched.admission->strangers;
  // answer_question() reports keys that are not allowed.
  if (kind != ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
    watched.admission->tell("a peer at " + event[1]
                            + " without encryption, or that expects another server's key");
  return true;
}

void ZapHandler::run(const std::stop_token& stop) {
  std::vector<Watched> watched;
  std::vector<zmq_pollitem_t> items;
  while (!stop.stop_requested()) {
    {
      const std::lock_guard lock(mutex_);
      watched.insert(watched.end(), arrived_.begin(), arrived_.end());
      arrived_.clear();
    }
    items = {{questions_, 0, ZMQ_POLLIN, 0}, {nullptr, bell_.descriptor(), ZMQ_POLLIN, 0}};
    for (const Watched& one : watched)
      items.push_back({one.events, 0, ZMQ_POLLIN, 0});
    if (zmq_poll(items.data(), static_cast<int>(items.size()), kNap) < 0)
      continue;
    if (items[1].revents != 0)
      bell_.silence();
    if (items[0].revents != 0)
      answer_question();
    for (std::size_t i = watched.size(); i-- > 0;)
      if (items[i + 2].revents != 0 && !take_event(watched[i])) {
        zmq_close(watched[i].events);
        watched.erase(watched.begin() + static_cast<std::ptrdiff_t>(i));
      }
  }
  for (const Watched& one : watched)
    zmq_close(one.events);
}

} // namespace troupe::env::wire
