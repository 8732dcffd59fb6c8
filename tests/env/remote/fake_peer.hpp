#pragma once

#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "env/remote/heartbeat.hpp"
#include "env/remote/protocol.hpp"
#include "env/sockets/bell.hpp"

namespace troupe::tests {

/// A peer whose answers are supplied by a test: the callback gets each question and returns the
/// answer to send, or nothing. By default it has two environments with one float64 and one action.
class FakePeer {
public:
  using Answer = std::optional<env::wire::Message>;
  using Script =
      std::function<Answer(const env::remote::message::Envelope& question, Answer usual)>;

  FakePeer(env::wire::Context& context, Script script,
           const std::string& endpoint = "tcp://127.0.0.1:*")
      : script_(std::move(script)),
        socket_(context, env::wire::SocketType::router),
        endpoint_(socket_.bind(endpoint)),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  ~FakePeer() {
    thread_.request_stop();
    bell_.ring();
  }

  const std::string& endpoint() const { return endpoint_; }

  static env::EnvironmentSpec spec() {
    env::EnvironmentSpec spec;
    spec.name = "fake";
    spec.observations = {{"x", env::ElementType::float64, {}}};
    spec.action = {.minimum = {-1}, .maximum = {1}};
    return spec;
  }

  /// What an honest peer answers, with rewards of 1.
  static Answer usual(const env::remote::message::Envelope& question) {
    using namespace env::remote;
    message::Envelope answer;
    answer.set_protocol(kProtocol);
    answer.set_session(question.session());
    answer.set_request(question.request());
    if (question.has_hello()) {
      auto& welcome = *answer.mutable_welcome();
      *welcome.mutable_spec() = encode_spec(spec());
      welcome.set_environments(question.hello().environments());
      welcome.set_row_bytes(8);
      return encode(answer);
    }
    if (question.has_bye()) {
      answer.mutable_gone();
      return encode(answer);
    }
    answer.mutable_played();
    auto out = encode(answer);
    const std::size_t rows = question.play().resets().empty() ? 2 : question.play().resets().size();
    std::vector<ResultRow> results(rows);
    for (std::size_t i = 0; i < rows; ++i)
      results[i] = {
          .reward = 1, .discount = 1, .step_type = question.play().resets().empty() ? 1 : 0};
    out.frames.emplace_back(std::as_bytes(std::span(results)));
    const std::vector<double> observations(rows, 0.5);
    out.frames.emplace_back(std::as_bytes(std::span(observations)));
    return out;
  }

private:
  void run(const std::stop_token& stop) {
    env::wire::Message message;
    while (!stop.stop_requested()) {
      if (socket_.try_receive(message) != env::wire::Socket::Received::message) {
        socket_.wait(env::remote::Clock::now() + std::chrono::seconds(1), bell_.descriptor());
        continue;
      }
      env::remote::message::Envelope question;
      question.ParseFromString(message.header);
      if (auto answer = script_(question, usual(question))) {
        answer->peer = message.peer;
        socket_.send(std::move(*answer), env::remote::Clock::now());
      }
    }
  }

  Script script_;
  env::wire::Socket socket_;
  std::string endpoint_;
  env::wire::Bell bell_;
  std::jthread thread_;
};

} // namespace troupe::tests
