#include "env/remote/remote_environment.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "env/checks.hpp"
#include "env/remote/exchange.hpp"
#include "env/remote/protocol.hpp"

namespace troupe::env {

namespace {

using namespace std::chrono_literals;
using remote::ProtocolError;
namespace message = remote::message;

constexpr auto kFarewell = 200ms;

void check_milliseconds(const char* key, std::chrono::milliseconds value) {
  if (value < 1ms || value > 24h)
    throw std::invalid_argument(std::string("remote ") + key + ": " + std::to_string(value.count())
                                + " ms; it must be 1 ms to a day");
}

} // namespace

void check(const RemoteOptions& options) {
  remote::check_endpoint(options.endpoint, options.allow_other_hosts || options.keys, false);
  if (options.environments < 1 || options.environments > remote::kMaxEnvironments)
    throw std::invalid_argument("remote environments: " + std::to_string(options.environments)
                                + "; it must be 1 to 4096");
  check_milliseconds("connect_deadline", options.connect_deadline);
  check_milliseconds("deadline", options.deadline);
  check_milliseconds("silence", options.silence);
  check_milliseconds("heartbeat_interval", options.heartbeat_interval);
  check_milliseconds("retry_interval", options.retry_interval);
  if (options.heartbeat_interval > options.silence / 2)
    throw std::invalid_argument(
        "remote heartbeat_interval: " + std::to_string(options.heartbeat_interval.count())
        + " ms; it must be at most half of silence = " + std::to_string(options.silence.count())
        + " ms");
  if (options.max_message_bytes < 8 || options.max_message_bytes > (std::size_t{1} << 32))
    throw std::invalid_argument("remote max_message_bytes: "
                                + std::to_string(options.max_message_bytes)
                                + "; it must be 8 bytes to 4 GiB");
}

struct RemoteEnvironments::Impl {
  explicit Impl(const RemoteOptions& o)
      : options((check(o), o)), context(o.context ? o.context : std::make_shared<wire::Context>()) {
    connect();
    failures.resize(options.environments);
  }
  ~Impl();

  void connect();
  void check_turns(std::span<const Turn> turns, std::span<const double> actions) const;
  void check_results(const RemoteResults& results) const;
  void send(std::span<const Turn> turns, std::span<const double> actions);
  std::size_t receive(const RemoteResults& results);
  void must_save(const char* verb) const;

  /// Runs `work`. A failure disconnects the peer.
  template <typename Work>
  auto guarded(Work work) {
    try {
      return work();
    } catch (const std::runtime_error& error) { // a ProtocolError, or an error of the socket
      lost = error.what();
      exchange.reset();
      asked.clear();
      throw std::runtime_error("remote environments at " + options.endpoint + ": " + lost);
    }
  }

  RemoteOptions options;
  std::shared_ptr<wire::Context> context;
  std::optional<remote::Exchange> exchange;
  std::optional<remote::Invitation> invitation; // the spec of the first one is kept
  std::string lost;                             // the reason, while there is no connection
  std::vector<remote::Asked> asked;             // rows of the present turn
  remote::Results results_;
  std::vector<std::string> failures;
};

void RemoteEnvironments::Impl::connect() {
  guarded([this] {
    exchange.emplace(*context, options);
    message::Envelope hello;
    hello.mutable_hello()->set_environments(static_cast<std::uint32_t>(options.environments));
    hello.mutable_hello()->set_client("Troupe");
    exchange->ask(std::move(hello));
    const auto answer =
        exchange->wait(message::Envelope::kWelcome, options.connect_deadline,
                       "a hello (does anything serve environments there?)", "connect_deadline");
    auto now = remote::decode_welcome(answer.header, answer.message, options.environments,
                                      options.max_message_bytes);
    if (invitation) {
      const std::string changed = remote::difference(invitation->spec, now.spec);
      if (!changed.empty())
        throw ProtocolError("it has returned with a different spec: " + changed);
    }
    exchange->watch(*context, now);
    invitation = std::move(now);
    lost.clear();
  });
}

RemoteEnvironments::Impl::~Impl() {
  if (!exchange)
    return;
  try {
    message::Envelope bye;
    bye.mutable_bye();
    exchange->ask(std::move(bye));
    exchange->wait(message::Envelope::kGone, kFarewell, "a bye", "farewell");
  } catch (const std::exception&) { // the lease expires by itself
  }
}

void RemoteEnvironments::Impl::check_turns(std::span<const Turn> turns,
                                           std::span<const double> actions) const {
  const std::size_t size = invitation->spec.action.size();
  if (turns.size() != options.environments)
    throw std::invalid_argument("remote environments at " + options.endpoint + ": "
                                + std::to_string(turns.size()) + " turns for "
                                + std::to_string(options.environments) + " environments");
  const bool steps = std::any_of(turns.begin(), turns.end(),
                                 [](const Turn& turn) { return turn.kind == Turn::Kind::step; });
  if (steps && actions.size() != turns.size() * size)
    throw std::invalid_argument("environment " + invitation->spec.name + ": "
                                + std::to_string(actions.size()) + " numbers of actions; ["
                                + std::to_string(turns.size()) + ", " + std::to_string(size)
                                + "] are needed");
  for (std::size_t i = 0; i < turns.size(); ++i)
    if (turns[i].kind == Turn::Kind::step)
      try {
        check_action(invitation->spec, actions.subspan(i * size, size));
      } catch (const std::invalid_argument& mistake) {
        throw std::invalid_argument("remote environment " + std::to_string(i) + " at "
                                    + options.endpoint + ": " + mistake.what());
      }
}

void RemoteEnvironments::Impl::send(std::span<const Turn> turns, std::span<const double> actions) {
  if (!exchange) {
    if (!std::all_of(turns.begin(), turns.end(),
                     [](const Turn& turn) { return turn.kind == Turn::Kind::reset; }))
      throw std::runtime_error("remote environments at " + options.endpoint
                               + " were lost; reset all of them to reconnect. The cause: " + lost);
    connect();
  }
  const ActionSpec& bounds = invitation->spec.action;
  const std::size_t size = bounds.size();
  message::Envelope question;
  message::Play& play = *question.mutable_play();
  asked.clear();
  std::vector<double> rows;
  rows.reserve(turns.size() * size);
  bool resets = false;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (turns[i].kind == Turn::Kind::keep)
      continue;
    const bool reset = turns[i].kind == Turn::Kind::reset;
    asked.push_back({.environment = i, .reset = reset});
    play.mutable_resets()->push_back(reset ? '\1' : '\0');
    resets |= reset;
    if (reset)
      play.add_seeds(turns[i].seed);
    for (std::size_t k = 0; k < size; ++k)
      rows.push_back(
          reset ? 0.0 : std::clamp(actions[i * size + k], bounds.minimum[k], bounds.maximum[k]));
  }
  if (asked.empty())
    return; // nothing to ask the peer
  if (asked.size() < turns.size())
    for (const remote::Asked& row : asked)
      play.add_environments(static_cast<std::uint32_t>(row.environment));
  if (!resets)
    play.clear_resets();
  const auto bytes = std::as_bytes(std::span(rows));
  guarded([&] { exchange->ask(std::move(question), {bytes.begin(), bytes.end()}); });
}

void RemoteEnvironments::Impl::check_results(const RemoteResults& results) const {
  const std::size_t row = invitation->spec.observation_bytes();
  if (results.steps.size() != options.environments
      || results.observations.size() != row * options.environments)
    throw std::invalid_argument("remote environments at " + options.endpoint + ": results for "
                                + std::to_string(results.steps.size()) + " steps and "
                                + std::to_string(results.observations.size())
                                + " bytes of observations; " + std::to_string(options.environments)
                                + " environments of " + std::to_string(row) + " bytes are needed");
}

std::size_t RemoteEnvironments::Impl::receive(const RemoteResults& results) {
  if (!asked.empty()) {
    const auto what = "a turn of " + std::to_string(asked.size()) + " environments";
    guarded([&] {
      const auto answer =
          exchange->wait(message::Envelope::kPlayed, options.deadline, what, "deadline");
      remote::decode_played(answer.header.played(), answer.message, invitation->spec, asked,
                            results_);
      const std::size_t size = invitation->spec.observation_bytes();
      const std::size_t from = remote::row_bytes(invitation->spec);
      for (std::size_t row = 0; row < asked.size(); ++row) {
        const std::size_t i = asked[row].environment;
        failures[i] = results_.failures[row];
        const remote::ResultRow& result = results_.rows[row];
        if (!failures[i].empty()) {
          results.steps[i] = {.step_type = StepType::last, .reward = 0, .discount = 1};
          continue;
        }
        results.steps[i] = {.step_type = static_cast<StepType>(result.step_type),
                            .reward = result.reward,
                            .discount = result.discount};
        std::memcpy(results.observations.data() + i * size,
                    results_.observations.data() + row * from, size);
      }
    });
  }
  std::size_t failed = 0;
  for (const remote::Asked& row : asked)
    failed += failures[row.environment].empty() ? 0 : 1;
  return failed;
}

void RemoteEnvironments::Impl::must_save(const char* verb) const {
  if (!invitation->can_save)
    throw std::runtime_error("remote environments at " + options.endpoint + ": the peer cannot "
                             + verb + " the state of '" + invitation->spec.name
                             + "' (Python environments have none to save; a server of troupe has "
                               "--can-save): a run that is resumed begins a new episode");
  if (!exchange)
    throw std::runtime_error("remote environments at " + options.endpoint + ": no state to " + verb
                             + ": " + lost);
}

RemoteEnvironments::RemoteEnvironments(const RemoteOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}

RemoteEnvironments::~RemoteEnvironments() = default;

const EnvironmentSpec& RemoteEnvironments::spec() const {
  return impl_->invitation->spec;
}

std::size_t RemoteEnvironments::size() const {
  return impl_->options.environments;
}

const std::string& RemoteEnvironments::endpoint() const {
  return impl_->options.endpoint;
}

std::size_t RemoteEnvironments::step(std::span<const double> actions,
                                     const RemoteResults& results) {
  const std::vector<Turn> turns(size());
  return play(turns, actions, results);
}

std::size_t RemoteEnvironments::play(std::span<const Turn> turns, std::span<const double> actions,
                                     const RemoteResults& results) {
  impl_->check_results(results);
  impl_->check_turns(turns, actions);
  impl_->send(turns, actions);
  return impl_->receive(results);
}

const std::string& RemoteEnvironments::failure(std::size_t environment) const {
  return impl_->failures.at(environment);
}

bool RemoteEnvironments::can_save() const {
  return impl_->invitation->can_save;
}

std::vector<std::byte> RemoteEnvironments::save(std::size_t environment) {
  impl_->must_save("save");
  message::Envelope question;
  question.mutable_save()->set_environment(static_cast<std::uint32_t>(environment));
  return impl_->guarded([&] {
    impl_->exchange->ask(std::move(question));
    const auto answer = impl_->exchange->wait(message::Envelope::kSaved, impl_->options.deadline,
                                              "a save", "deadline");
    if (answer.message.frames.size() != 1)
      throw ProtocolError("it sent a saved state without its bytes");
    const auto bytes = answer.message.frames[0].bytes();
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  });
}

void RemoteEnvironments::load(std::size_t environment, std::span<const std::byte> state) {
  impl_->must_save("load");
  message::Envelope question;
  question.mutable_load()->set_environment(static_cast<std::uint32_t>(environment));
  impl_->guarded([&] {
    impl_->exchange->ask(std::move(question), {state.begin(), state.end()});
    impl_->exchange->wait(message::Envelope::kLoaded, impl_->options.deadline, "a load",
                          "deadline");
  });
}

} // namespace troupe::env
