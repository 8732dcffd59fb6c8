#include "learner/parameter_server/parameter_server_client.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "env/wire/control.hpp"
#include "learner/parameter_server/client_abort.hpp"
#include "learner/parameter_server/parameter_server_beats.hpp"
#include "learner/parameter_server/parameter_wire.hpp"

namespace troupe::learner {
namespace {

using env::wire::Message;
using env::wire::Socket;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFarewell{500}; // longest time spent on leaving
constexpr int kLongestInterval = 8;                 // in ask_intervals

void check(const ParameterServerClientOptions& options) {
  if (options.endpoints.empty())
    throw std::invalid_argument("a client of parameter servers needs their endpoints");
  if (options.worker < 0)
    throw std::invalid_argument("worker " + std::to_string(options.worker)
                                + " of parameter servers must be at least 0");
  for (const auto& [name, value] :
       {std::pair{"timeout", options.timeout}, std::pair{"ask_interval", options.ask_interval},
        std::pair{"beat_interval", options.beat_interval}})
    if (value.count() <= 0)
      throw std::invalid_argument(std::string(name) + " of a client of parameter servers, "
                                  + std::to_string(value.count()) + " ms, must be positive");
}

std::uint64_t make_session() {
  const env::wire::Token token = env::wire::make_token();
  std::uint64_t session = 0;
  std::memcpy(&session, token.data(), sizeof session);
  return session | 1; // 0 means no session
}

env::wire::SocketOptions socket_options(const ParameterServerClientOptions& options, bool data) {
  env::wire::SocketOptions made;
  made.max_frame_bytes = kFrameBytes;
  if (data)
    made.shared_memory = options.shared_memory;
  made.client_keys = options.keys;
  return made;
}

} // namespace

struct ParameterServerClient::Impl {
  /// A server and the state of the current exchange with it.
  struct Server {
    Server(env::wire::Context& context, std::string where, const ParameterServerClientOptions& o)
        : endpoint(std::move(where)),
          socket(context, env::wire::SocketType::dealer, socket_options(o, true)) {
      socket.connect(endpoint);
    }
    std::string endpoint;
    Socket socket;
    ServedSlice slice;
    std::int64_t first = 0; // first element in the flat tensors
    std::int64_t count = 0; // number of elements
    std::int64_t version = 0;

    bool done = false;
    std::uint64_t first_number = 0; // number of this exchange's first message
    std::uint64_t last_number = 0;
    Clock::time_point ask_at;
    int interval = 1; // in ask_intervals
    bool answered = false;
    std::string waits; // why the server makes this worker wait, in its words
    std::uint32_t outcome = 0;
    std::int64_t staleness = 0;
    double rate_scale = 1;
  };

  Impl(env::wire::Context& context, const ParameterServerClientOptions& o, int number);

  wire::Envelope address() const; // an envelope with only this worker's identity
  wire::Envelope head(const Server& server) const;
  void send(Server& server, wire::Envelope&& head, const at::Tensor* data, Clock::time_point now);
  void join(Server& server, bool with_parameters, Clock::time_point now);
  void push(Server& server, Clock::time_point now);
  void ask(Server& server, Clock::time_point now);
  void drain(Server& server);
  void take(Server& server, const wire::Envelope& answer, const Message& message);
  void act(Server& server, wire::Answer::Need need);
  void finish(Clock::time_point begun);
  void leave(); // and briefly waits until the servers confirm it
  [[noreturn]] void give_up(const Server& server) const;

  ParameterServerClientOptions options;
  std::uint32_t optimizer;
  std::uint64_t session = make_session();
  std::uint64_t number = 0; // number of the last message sent
  std::vector<std::unique_ptr<Server>> servers;
  std::int64_t step = 0;
  bool has_parameters = false; // received from a server
  // State of the exchange in progress.
  const at::Tensor* gradient = nullptr;
  const std::vector<bool>* present = nullptr;
  const std::vector<double>* rates = nullptr;
  at::Tensor* parameters = nullptr;

  ParameterServerBeats beats;
};

ParameterServerClient::Impl::Impl(env::wire::Context& context,
                                  const ParameterServerClientOptions& o, int which)
    : options((check(o), o)),
      optimizer(static_cast<std::uint32_t>(which)),
      beats(context, options.endpoints, socket_options(options, false), options.beat_interval,
            [beat = address()](std::int64_t done, std::int64_t version, bool resting) {
              wire::Envelope made = beat;
              made.set_step(done);
              made.set_version(version);
              made.mutable_beat()->set_resting(resting);
              return made.SerializeAsString();
            }) {
  for (const auto& endpoint : options.endpoints)
    servers.push_back(std::make_unique<Server>(context, endpoint, options));
}

wire::Envelope ParameterServerClient::Impl::address() const {
  wire::Envelope made;
  made.set_protocol(kParameterProtocol);
  made.set_optimizer(optimizer);
  made.set_worker(static_cast<std::uint32_t>(options.worker));
  made.set_session(session);
  return made;
}

wire::Envelope ParameterServerClient::Impl::head(const Server& server) const {
  wire::Envelope made = address();
  made.set_step(step);
  made.set_version(server.version);
  return made;
}

void ParameterServerClient::Impl::send(Server& server, wire::Envelope&& envelope,
                                       const at::Tensor* data, Clock::time_point now) {
  envelope.set_number(++number);
  Message message;
  message.header = envelope.SerializeAsString();
  if (data)
    message.frames =
        frames_of(data->narrow(0, server.first, server.count), server.socket, std::string());
  server.socket.send(std::move(message), now);
  server.last_number = number;
  server.ask_at = now + options.ask_interval * server.interval;
}

void ParameterServerClient::Impl::join(Server& server, bool with_parameters,
                                       Clock::time_point now) {
  wire::Envelope made = head(server);
  *made.mutable_join()->mutable_slice() = encode(server.slice);
  made.mutable_join()->set_can_begin(with_parameters);
  send(server, std::move(made), with_parameters ? parameters : nullptr, now);
}

void ParameterServerClient::Impl::push(Server& server, Clock::time_point now) {
  wire::Envelope made = head(server);
  wire::Push& given = *made.mutable_exchange()->mutable_push();
  given.mutable_learning_rates()->Add(rates->begin(), rates->end());
  if (!present->empty())
    for (const Segment& segment : server.slice.segments)
      given.mutable_present()->push_back(
          present->at(static_cast<std::size_t>(segment.parameter)) ? 1 : 0);
  send(server, std::move(made), present->empty() ? nullptr : gradient, now);
}

void ParameterServerClient::Impl::ask(Server& server, Clock::time_point now) {
  server.interval = std::min(server.interval * 2, kLongestInterval);
  if (step == 0)
    return join(server, false, now);
  wire::Envelope made = head(server);
  made.mutable_exchange();
  send(server, std::move(made), nullptr, now);
}

void ParameterServerClient::Impl::act(Server& server, wire::Answer::Need need) {
  const auto now = Clock::now();
  if (need == wire::Answer::PUSH && gradient)
    push(server, now);
  else if (need == wire::Answer::JOIN)
    join(server, false, now);
  else if (need == wire::Answer::PARAMETERS && (has_parameters || options.worker == 0))
    join(server, true, now);
}

void ParameterServerClient::Impl::take(Server& server, const wire::Envelope& answer,
                                       const Message& message) {
  const wire::Answer& body = answer.answer();
  if (answer.number() < server.first_number || answer.session() != session)
    return; // belongs to an earlier exchange
  server.answered = true;
  if (!body.refusal().empty() && answer.number() == server.last_number)
    throw std::runtime_error("parameter server at " + server.endpoint + ": " + body.refusal());
  if (!body.parameters()) {
    server.waits = body.why();
    if (answer.number() == server.last_number)
      act(server, body.need());
    return;
  }
  auto part = parameters->narrow(0, server.first, server.count);
  if (!copy_frames(message.frames, part))
    throw std::runtime_error("parameter server at " + server.endpoint
                             + " sent parameters of another size than it was given");
  server.version = answer.version();
  server.outcome = body.outcome();
  server.staleness = body.staleness();
  server.rate_scale = body.rate_scale();
  server.done = true;
  // Also while other servers are awaited: one that restarted must know what arrived here.
  std::vector<ParameterServerBeats::Progress> progress;
  for (const auto& one : servers)
    progress.push_back(
        {.step = one->done ? step : std::max<std::int64_t>(0, step - 1), .version = one->version});
  beats.set_progress(std::move(progress));
}

void ParameterServerClient::Impl::drain(Server& server) {
  Message message;
  for (;;) {
    const Socket::Received got = server.socket.try_receive(message);
    if (got == Socket::Received::nothing || server.done)
      return;
    std::string why;
    if (got != Socket::Received::message)
      continue;
    const auto head = decode_envelope(message.header, why);
    if (!head)
      throw std::runtime_error("the peer at " + server.endpoint + " sent " + why
                               + "; is it a parameter server?");
    if (head->has_answer())
      take(server, *head, message);
  }
}

void ParameterServerClient::Impl::give_up(const Server& server) const {
  const std::string limit = std::to_string(options.timeout.count()) + " ms";
  if (!server.answered)
    throw std::runtime_error("parameter server at " + server.endpoint + " gave no sign of life for "
                             + limit
                             + ". Start it again at the same endpoint, or raise the timeout");
  throw std::runtime_error("parameter server at " + server.endpoint + ": " + server.waits + " for "
                           + limit
                           + ". Look at the workers that are waited for, or raise the timeout");
}

void ParameterServerClient::Impl::finish(Clock::time_point begun) {
  const auto deadline = begun + options.timeout;
  for (;;) {
    if (options.abort)
      options.abort->check();
    Server* open = nullptr;
    auto due = deadline;
    const auto now = Clock::now();
    for (const auto& server : servers) {
      if (!server->done)
        drain(*server);
      if (server->done)
        continue;
      if (now >= server->ask_at)
        ask(*server, now);
      due = std::min(due, server->ask_at);
      open = server.get(); // any will do, because all must answer
    }
    if (!open)
      break;
    if (now >= deadline)
      give_up(*open);
    open->socket.wait(due, options.abort ? options.abort->descriptor() : -1);
  }
  has_parameters = true;
}

ParameterServerClient::ParameterServerClient(env::wire::Context& context,
                                             const ParameterServerClientOptions& options,
                                             int optimizer)
    : impl_(std::make_unique<Impl>(context, options, optimizer)) {}

ParameterServerClient::~ParameterServerClient() {
  impl_->leave();
}

int ParameterServerClient::servers() const {
  return static_cast<int>(impl_->servers.size());
}

std::int64_t ParameterServerClient::version() const {
  const auto version_of = [](const auto& server) { return server->version; };
  return version_of(*std::ranges::min_element(impl_->servers, {}, version_of));
}

void ParameterServerClient::begin(const OptimizerRecipe& recipe, const ShardPlan& plan,
                                  at::Tensor& parameters) {
  Impl& my = *impl_;
  my.parameters = &parameters;
  const auto now = Clock::now();
  std::int64_t first = 0;
  for (std::size_t i = 0; i < my.servers.size(); ++i) {
    Impl::Server& server = *my.servers[i];
    server.slice = {.recipe = recipe, .segments = plan.at(i), .type = parameters.scalar_type()};
    server.first = first;
    server.count = elements_of(server.slice.segments);
    first += server.count;
    server.first_number = my.number + 1;
    my.join(server, false, now);
  }
  my.beats.set(true);
  my.finish(now);
  my.parameters = nullptr;
}

ExchangeReport ParameterServerClient::exchange(const at::Tensor& gradient,
                                               const std::vector<bool>& present,
                                               const std::vector<double>& learning_rates,
                                               at::Tensor& parameters) {
  Impl& my = *impl_;
  my.gradient = &gradient;
  my.present = &present;
  my.rates = &learning_rates;
  my.parameters = &parameters;
  ++my.step;
  const auto begun = Clock::now();
  my.beats.set(true);
  my.beats.set_resting(false);
  for (const auto& server : my.servers) {
    server->done = false;
    server->answered = false;
    server->interval = 1;
    server->first_number = my.number + 1;
    my.push(*server, begun);
  }
  my.finish(begun);
  my.gradient = nullptr;
  my.parameters = nullptr;
  ExchangeReport report{.version = version()};
  for (const auto& server : my.servers) {
    report.staleness = std::max(report.staleness, server->staleness);
    report.dropped += server->outcome == static_cast<std::uint32_t>(Outcome::dropped) ? 1 : 0;
    report.rate_scale = std::min(report.rate_scale, server->rate_scale);
    report.rewound += server->outcome == static_cast<std::uint32_t>(Outcome::rewound) ? 1 : 0;
  }
  report.waited_seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  return report;
}

void ParameterServerClient::Impl::leave() {
  if (!beats.set(false))
    return;
  const auto deadline = Clock::now() + kFarewell;
  for (const auto& server : servers) {
    wire::Envelope made = head(*server);
    made.mutable_leave();
    server->done = false;
    server->first_number = number + 1;
    send(*server, std::move(made), nullptr, Clock::now());
  }
  for (const auto& server : servers) { // closing a socket discards messages in transit
    Message message;
    while (!server->done && server->socket.wait(deadline))
      while (server->socket.try_receive(message) == Socket::Received::message) {
        std::string why;
        const auto head = decode_envelope(message.header, why);
        server->done = head && head->number() >= server->first_number;
      }
  }
}

void ParameterServerClient::suspend_participation() {
  impl_->beats.set_resting(true);
  for (const auto& server : impl_->servers) {
    wire::Envelope made = impl_->head(*server);
    made.mutable_leave()->set_resting(true);
    impl_->send(*server, std::move(made), nullptr, Clock::now());
  }
}

UpdateRuleFactory remote_parameter_server_rules(env::wire::Context& context,
                                                const ParameterServerClientOptions& client,
                                                const ParameterServerRuleOptions& options) {
  return parameter_server_rules(
      [&context, client](int optimizer) {
        return std::make_unique<ParameterServerClient>(context, client, optimizer);
      },
      options);
}

} // namespace troupe::learner
