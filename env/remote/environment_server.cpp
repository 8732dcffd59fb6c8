#include "env/remote/environment_server.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "env/remote/heartbeat.hpp"
#include "env/remote/leases.hpp"
#include "env/remote/served.hpp"
#include "env/sockets/bell.hpp"

namespace troupe::env {

namespace {

using namespace std::chrono_literals;
using remote::answer_to;
using remote::Clock;
using remote::Session;
namespace message = remote::message;

constexpr auto kServerNap = 1s;
constexpr std::size_t kLoggedKinds = 100; // distinct kinds of garbage to log

void check(const EnvironmentServerOptions& options) {
  remote::check_endpoint(options.endpoint, options.allow_other_hosts || options.keys, true);
  if (options.environments < 1 || options.environments > remote::kMaxEnvironments)
    throw std::invalid_argument("environments to serve: " + std::to_string(options.environments)
                                + "; it must be 1 to 4096");
  if (options.silence < 1ms || options.silence > 24h)
    throw std::invalid_argument("silence of clients: " + std::to_string(options.silence.count())
                                + " ms; it must be 1 ms to a day");
}

std::size_t largest_frame(const EnvironmentServerOptions& options, const EnvironmentSpec& spec) {
  return std::max({remote::kMaxHeader, options.can_save ? options.max_message_bytes : 0,
                   options.environments * spec.action.size() * sizeof(double)});
}

} // namespace

struct EnvironmentServer::Impl {
  Impl(std::shared_ptr<wire::Context> shared, const Make& make, const EnvironmentServerOptions& o)
      : options((check(o), o)),
        context(shared ? std::move(shared) : std::make_shared<wire::Context>()),
        served(make, o),
        leases(o.environments, o.silence),
        socket(*context, wire::SocketType::router,
               {.max_frame_bytes = largest_frame(o, served.spec()),
                .max_frames = 1,
                .max_header_bytes = remote::kMaxHeader,
                .allow_other_hosts = o.allow_other_hosts,
                .server_keys = o.keys}),
        endpoint(socket.bind(o.endpoint)),
        heartbeats(*context, remote::heartbeat_bind(endpoint),
                   {.allow_other_hosts = o.allow_other_hosts, .server_keys = o.keys},
                   [this](std::uint64_t session) { return seen(session); }) {
    if (o.allow_other_hosts && !o.keys)
      o.log("nothing is encrypted, and every user and host that reaches " + endpoint
            + " may use its environments (--allow-other-hosts); keys exclude others "
              "(--secret-key, --allowed-keys)");
    thread = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  ~Impl() {
    thread.request_stop();
    wake.ring();
  }

  bool seen(std::uint64_t session) {
    const std::lock_guard lock(mutex);
    return leases.seen(session, Clock::now());
  }

  void run(const std::stop_token& stop);
  void handle(wire::Message&& question);
  void welcome(const message::Envelope& question, const std::string& peer);
  void say(const std::string& peer, const Session& session);
  void refuse(const std::string& peer, const message::Envelope& question,
              message::Refused::Reason reason, const std::string& text);
  void drop(const std::string& why);

  EnvironmentServerOptions options;
  std::shared_ptr<wire::Context> context;
  remote::Served served;
  std::mutex mutex; // guards the leases, which the heartbeat thread updates
  remote::Leases leases;
  std::map<std::uint64_t, Session> sessions;
  std::set<std::string> logged;
  std::atomic<std::int64_t> garbage = 0;
  std::atomic<std::int64_t> clients = 0;
  wire::Socket socket;
  std::string endpoint;
  remote::HeartbeatAnswers heartbeats;
  wire::Bell wake;
  std::jthread thread; // last: it uses all of the above
};

void EnvironmentServer::Impl::run(const std::stop_token& stop) {
  wire::Message question;
  while (!stop.stop_requested()) {
    const auto got = socket.try_receive(question);
    if (got == wire::Socket::Received::nothing)
      socket.wait(Clock::now() + kServerNap, wake.descriptor());
    else if (got == wire::Socket::Received::oversized)
      drop("a message that exceeds the limits");
    else
      try {
        handle(std::move(question));
      } catch (const std::exception& error) { // for example out of memory
        drop(error.what());
      }
  }
  served.clear();
}

void EnvironmentServer::Impl::drop(const std::string& why) {
  ++garbage;
  if (logged.size() < kLoggedKinds && logged.insert(why).second)
    options.log("dropped: " + why);
}

void EnvironmentServer::Impl::say(const std::string& peer, const Session& session) {
  wire::Message message;
  message.peer = peer;
  message.header = session.header;
  for (const auto& frame : session.frames)
    message.frames.emplace_back(std::span<const std::byte>(frame));
  socket.send(std::move(message), Clock::now()); // dropped if the client has left
}

void EnvironmentServer::Impl::refuse(const std::string& peer, const message::Envelope& question,
                                     message::Refused::Reason reason, const std::string& text) {
  message::Envelope answer = answer_to(question);
  answer.mutable_refused()->set_reason(reason);
  answer.mutable_refused()->set_message(text);
  wire::Message message = remote::encode(answer);
  message.peer = peer;
  socket.send(std::move(message), Clock::now());
}

void EnvironmentServer::Impl::handle(wire::Message&& question) {
  message::Envelope header;
  if (!header.ParseFromString(question.header)) {
    drop("a header that is not a Protobuf Envelope");
    return;
  }
  if (header.protocol() != remote::kProtocol) {
    drop("version " + std::to_string(header.protocol()) + " of the protocol");
    refuse(question.peer, header, message::Refused::PROTOCOL,
           "this peer speaks version " + std::to_string(remote::kProtocol)
               + " of the protocol; use Troupe and troupe_env of the same release on both sides");
    return;
  }
  if (header.has_hello()) {
    welcome(header, question.peer);
    return;
  }
  const auto found = sessions.find(header.session());
  if (found == sessions.end() || !seen(header.session())) {
    if (found == sessions.end() && header.has_bye())
      return; // a repeated bye
    refuse(question.peer, header, message::Refused::SESSION,
           "it does not know this client: it was restarted, or the client's heartbeats stopped for "
           "longer than "
               + std::to_string(options.silence.count())
               + " ms and its environments were given to another; the episodes are lost, reset "
                 "begins new ones");
    return;
  }
  Session& session = found->second;
  if (header.request() < session.request)
    return; // already answered, and the client has moved on
  if (header.request() > session.request) {
    try {
      served.obey(session, header, question);
      session.request = header.request();
    } catch (const std::exception& error) {
      drop(std::string("a request that breaks a rule: ") + error.what());
      refuse(question.peer, header, message::Refused::REQUEST, error.what());
      return;
    }
  }
  say(question.peer, session);
  if (header.has_bye()) {
    const std::lock_guard lock(mutex);
    leases.give_back(header.session());
    sessions.erase(found);
    clients = static_cast<std::int64_t>(sessions.size());
    options.log("a client gave its environments back");
  }
}

void EnvironmentServer::Impl::welcome(const message::Envelope& question, const std::string& peer) {
  if (const auto found = sessions.find(question.session()); found != sessions.end()) {
    if (found->second.request == question.request())
      say(peer, found->second);
    return;
  }
  const std::size_t count = question.hello().environments();
  if (question.session() == 0 || count < 1 || count > served.size()) {
    refuse(peer, question, message::Refused::REQUEST,
           std::to_string(count) + " environments in session " + std::to_string(question.session())
               + " were asked for; there are " + std::to_string(served.size())
               + ", and the number of a session must not be 0");
    return;
  }
  remote::Leases::Taken taken;
  std::size_t free = 0;
  {
    const std::lock_guard lock(mutex);
    taken = leases.take(question.session(), count, Clock::now());
    free = leases.free();
  }
  for (const std::uint64_t forgotten : taken.forgotten) {
    sessions.erase(forgotten);
    options.log("a client has been silent for too long; its environments were taken back");
  }
  if (taken.environments.empty()) {
    refuse(peer, question, message::Refused::FULL,
           std::to_string(free) + " of " + std::to_string(served.size())
               + " environments are free and " + std::to_string(count)
               + " were asked for; serve more (--count), or end another client");
    return;
  }
  Session& session = sessions[question.session()];
  session.environments = std::move(taken.environments);
  served.begin(session);
  message::Envelope answer = answer_to(question);
  message::Welcome& body = *answer.mutable_welcome();
  *body.mutable_spec() = remote::encode_spec(served.spec());
  body.set_environments(static_cast<std::uint32_t>(count));
  body.set_row_bytes(remote::row_bytes(served.spec()));
  body.set_can_save(options.can_save);
  body.mutable_heartbeat()->set_port(heartbeats.port());
  body.mutable_heartbeat()->set_silence_milliseconds(
      static_cast<std::uint32_t>(options.silence.count()));
  session.request = question.request();
  answer.SerializeToString(&session.header);
  clients = static_cast<std::int64_t>(sessions.size());
  options.log("a client (" + remote::printable(question.hello().client(), remote::kMaxName)
              + ") plays " + std::to_string(count) + " environments");
  say(peer, session);
}

EnvironmentServer::EnvironmentServer(std::shared_ptr<wire::Context> context, const Make& make,
                                     const EnvironmentServerOptions& options)
    : impl_(std::make_unique<Impl>(std::move(context), make, options)) {}

EnvironmentServer::~EnvironmentServer() = default;

const EnvironmentSpec& EnvironmentServer::spec() const {
  return impl_->served.spec();
}

const std::string& EnvironmentServer::endpoint() const {
  return impl_->endpoint;
}

EnvironmentServerCounters EnvironmentServer::counters() const {
  return {.turns = impl_->served.turns(),
          .failures = impl_->served.failures(),
          .garbage = impl_->garbage,
          .clients = impl_->clients};
}

} // namespace troupe::env
