#include "env/remote/environment_server.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "env/remote/heartbeat.hpp"
#include "env/remote/leases.hpp"
#include "env/remote/protocol.hpp"
#include "env/wrappers/checks.hpp"

namespace troupe::env {

namespace {

using namespace std::chrono_literals;
using remote::Clock;
using remote::ProtocolError;
namespace message = remote::message;

constexpr auto kNap = 1s;
constexpr std::size_t kLoggedKinds = 100; // of garbage

/// One environment and whether it has an episode that goes on.
struct Player {
  std::unique_ptr<Environment> environment;
  bool playing = false;
};

/// One client: its environments, and its last question's answer, which it may ask for again.
struct Session {
  std::vector<std::size_t> environments;
  std::uint64_t request = 0;
  std::string header;
  std::vector<std::vector<std::byte>> frames;
};

void check(const EnvironmentServerOptions& options) {
  remote::check_endpoint(options.endpoint, options.allow_other_hosts, true);
  if (options.environments < 1 || options.environments > remote::kMaxEnvironments)
    throw std::invalid_argument("environments to serve: " + std::to_string(options.environments)
                                + "; it must be 1 to 4096");
  if (options.silence < 1ms || options.silence > 24h)
    throw std::invalid_argument("silence of clients: " + std::to_string(options.silence.count())
                                + " ms; it must be 1 ms to a day");
}

std::vector<Player> make_players(const EnvironmentServer::Make& make,
                                 const EnvironmentServerOptions& options) {
  std::vector<Player> players;
  for (std::size_t i = 0; i < options.environments; ++i) {
    players.push_back({.environment = make()});
    const EnvironmentSpec& spec = players.back().environment->spec();
    const std::string difference = remote::difference(players[0].environment->spec(), spec);
    if (!difference.empty())
      throw std::invalid_argument("environments of one server must be equal: " + difference);
    try {
      remote::check_spec(spec, options.max_message_bytes);
    } catch (const ProtocolError& error) {
      throw std::invalid_argument("environment '" + spec.name
                                  + "' cannot be served: " + error.what());
    }
  }
  return players;
}

std::size_t largest_frame(const EnvironmentServerOptions& options, const EnvironmentSpec& spec) {
  return std::max({remote::kMaxHeader, options.can_save ? options.max_message_bytes : 0,
                   options.environments * spec.action.size() * sizeof(double)});
}

message::Envelope answer_to(const message::Envelope& question) {
  message::Envelope answer;
  answer.set_protocol(remote::kProtocol);
  answer.set_session(question.session());
  answer.set_request(question.request());
  return answer;
}

} // namespace

struct EnvironmentServer::Impl {
  Impl(std::shared_ptr<wire::Context> shared, const Make& make, const EnvironmentServerOptions& o)
      : options((check(o), o)),
        context(shared ? std::move(shared) : std::make_shared<wire::Context>()),
        players(make_players(make, o)),
        spec(players[0].environment->spec()),
        leases(o.environments, o.silence),
        socket(*context, wire::SocketType::router,
               {.max_frame_bytes = largest_frame(o, spec),
                .max_frames = 1,
                .max_header_bytes = remote::kMaxHeader,
                .allow_other_hosts = o.allow_other_hosts}),
        endpoint(socket.bind(o.endpoint)),
        heartbeats(*context, remote::heartbeat_bind(endpoint), o.allow_other_hosts,
                   [this](std::uint64_t session) { return seen(session); }),
        thread([this](const std::stop_token& stop) { run(stop); }) {}

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
  void obey(Session& session, const message::Envelope& question, const wire::Message& message);
  void play(Session& session, const message::Envelope& question, const wire::Message& message);
  std::string play_one(Player& player, std::size_t row, remote::ResultRow& result,
                       std::span<std::byte> observation);
  Player& player(const Session& session, std::uint32_t index);
  void say(const std::string& peer, const Session& session);
  void refuse(const std::string& peer, const message::Envelope& question,
              message::Refused::Reason reason, const std::string& text);
  void drop(const std::string& why);

  EnvironmentServerOptions options;
  std::shared_ptr<wire::Context> context;
  std::vector<Player> players;
  EnvironmentSpec spec;
  std::mutex mutex; // of leases: the heart-beat thread notes who lives
  remote::Leases leases;
  std::map<std::uint64_t, Session> sessions;
  std::set<std::string> logged;
  remote::Plays plays;
  std::atomic<std::int64_t> turns = 0;
  std::atomic<std::int64_t> failures = 0;
  std::atomic<std::int64_t> garbage = 0;
  std::atomic<std::int64_t> clients = 0;
  wire::Socket socket;
  std::string endpoint;
  remote::HeartbeatAnswers heartbeats;
  remote::Wake wake;
  std::jthread thread; // last: it uses all of the above
};

void EnvironmentServer::Impl::run(const std::stop_token& stop) {
  wire::Message question;
  while (!stop.stop_requested()) {
    const auto got = socket.try_receive(question);
    if (got == wire::Socket::Received::nothing)
      socket.wait(Clock::now() + kNap, wake.descriptor());
    else if (got == wire::Socket::Received::oversized)
      drop("a message beyond the limits");
    else
      handle(std::move(question));
  }
  players.clear(); // on the thread that may have their GL context
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
  socket.send(std::move(message), Clock::now()); // a client that is gone has no use for it
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
    drop("a header that is no Protobuf Envelope");
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
      return; // said twice
    refuse(
        question.peer, header, message::Refused::SESSION,
        "it does not know this client: it was restarted, or the client's heart-beats stopped for "
        "longer than "
            + std::to_string(options.silence.count())
            + " ms and its environments were given to another; the episodes are lost, reset "
              "begins new ones");
    return;
  }
  Session& session = found->second;
  if (header.request() < session.request)
    return; // answered already, and the client has gone on
  if (header.request() > session.request) {
    try {
      obey(session, header, question);
      session.request = header.request();
    } catch (const std::exception& error) {
      drop(std::string("a question that breaks a rule: ") + error.what());
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
  if (question.session() == 0 || count < 1 || count > players.size()
      || players.size() / count < 1) {
    refuse(peer, question, message::Refused::REQUEST,
           std::to_string(count) + " environments in session " + std::to_string(question.session())
               + " were asked for; there are " + std::to_string(players.size())
               + ", and a session is a number other than 0");
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
           std::to_string(free) + " of " + std::to_string(players.size())
               + " environments are free and " + std::to_string(count)
               + " were asked for; serve more (--count), or end another client");
    return;
  }
  Session& session = sessions[question.session()];
  session.environments = std::move(taken.environments);
  for (const std::size_t i : session.environments)
    players[i].playing = false;
  message::Envelope answer = answer_to(question);
  message::Welcome& body = *answer.mutable_welcome();
  *body.mutable_spec() = remote::encode_spec(spec);
  body.set_environments(static_cast<std::uint32_t>(count));
  body.set_row_bytes(remote::row_bytes(spec));
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

Player& EnvironmentServer::Impl::player(const Session& session, std::uint32_t index) {
  if (index >= session.environments.size())
    throw ProtocolError("environment " + std::to_string(index) + " is not one of this client's "
                        + std::to_string(session.environments.size()));
  return players[session.environments[index]];
}

/// Answers one question of the session: leaves its header and frames.
void EnvironmentServer::Impl::obey(Session& session, const message::Envelope& question,
                                   const wire::Message& message) {
  message::Envelope answer = answer_to(question);
  switch (question.body_case()) {
  case message::Envelope::kPlay:
    play(session, question, message);
    return;
  case message::Envelope::kBye:
    answer.mutable_gone();
    session.frames.clear();
    break;
  case message::Envelope::kSave: {
    Player& one = player(session, question.save().environment());
    if (!options.can_save || !one.playing)
      throw ProtocolError(options.can_save ? "there is no episode to save: reset first"
                                           : "this peer saves no states");
    std::vector<std::byte> state;
    one.environment->save_state(state);
    answer.mutable_saved();
    session.frames.assign(1, std::move(state));
    break;
  }
  case message::Envelope::kLoad: {
    Player& one = player(session, question.load().environment());
    if (!options.can_save || message.frames.size() != 1)
      throw ProtocolError(options.can_save ? "a load has 1 data frame"
                                           : "this peer loads no states");
    one.playing = false;
    if (!one.environment->load_state(message.frames[0].bytes()).empty())
      throw ProtocolError("the state has more bytes than '" + spec.name + "' saves");
    one.playing = true;
    answer.mutable_loaded();
    session.frames.clear();
    break;
  }
  default:
    throw ProtocolError("a message of kind " + std::to_string(question.body_case())
                        + " is not for whoever has the environments");
  }
  answer.SerializeToString(&session.header);
}

/// Plays one row; gives why it failed, "" when it did not.
std::string EnvironmentServer::Impl::play_one(Player& one, std::size_t row,
                                              remote::ResultRow& result,
                                              std::span<std::byte> observation) {
  if (!plays.resets[row] && !one.playing)
    return "there is no episode to step: reset first";
  one.playing = false;
  try {
    const std::size_t size = spec.action.size();
    const TimeStep step = plays.resets[row]
                              ? one.environment->reset(plays.seeds[row], observation)
                              : one.environment->step(
                                  std::span(plays.actions).subspan(row * size, size), observation);
    result = {.reward = step.reward,
              .discount = step.discount,
              .step_type = static_cast<std::int64_t>(step.step_type)};
    one.playing = step.step_type != StepType::last;
    return "";
  } catch (const std::exception& error) {
    std::fill(observation.begin(), observation.end(), std::byte{0});
    return *error.what() == '\0' ? "(no reason given)" : error.what();
  }
}

void EnvironmentServer::Impl::play(Session& session, const message::Envelope& question,
                                   const wire::Message& message) {
  remote::decode_play(question.play(), message, session.environments.size(), spec.action.size(),
                      plays);
  const std::size_t rows = plays.environments.size();
  const std::size_t row_size = remote::row_bytes(spec);
  session.frames.resize(2);
  session.frames[0].resize(rows * sizeof(remote::ResultRow));
  session.frames[1].resize(rows * row_size);
  message::Envelope answer = answer_to(question);
  message::Played& played = *answer.mutable_played();
  for (std::size_t row = 0; row < rows; ++row) {
    remote::ResultRow result;
    const std::string failure =
        play_one(players[session.environments[plays.environments[row]]], row, result,
                 std::span(session.frames[1]).subspan(row * row_size, spec.observation_bytes()));
    if (!failure.empty()) {
      result = {.reward = 0, .discount = 1, .step_type = remote::kFailed};
      message::Failure& told = *played.add_failures();
      told.set_row(static_cast<std::uint32_t>(row));
      told.set_message(remote::printable(failure, 200));
      ++failures;
    }
    std::memcpy(session.frames[0].data() + row * sizeof result, &result, sizeof result);
    ++turns;
  }
  answer.SerializeToString(&session.header);
}

EnvironmentServer::EnvironmentServer(std::shared_ptr<wire::Context> context, const Make& make,
                                     const EnvironmentServerOptions& options)
    : impl_(std::make_unique<Impl>(std::move(context), make, options)) {}

EnvironmentServer::~EnvironmentServer() = default;

const EnvironmentSpec& EnvironmentServer::spec() const {
  return impl_->spec;
}

const std::string& EnvironmentServer::endpoint() const {
  return impl_->endpoint;
}

EnvironmentServerCounters EnvironmentServer::counters() const {
  return {.turns = impl_->turns,
          .failures = impl_->failures,
          .garbage = impl_->garbage,
          .clients = impl_->clients};
}

} // namespace troupe::env
