#include <doctest/doctest.h>

#include "env/random.hpp"
#include "env/remote/environment_server.hpp"
#include "env/remote/heartbeat.hpp"
#include "env/remote/protocol.hpp"
#include "tests/env/remote/toy.hpp"
#include "tests/mutated.hpp"

using namespace troupe::env;
using namespace troupe::tests;
using remote::Clock;
using remote::message::Envelope;

namespace {

class Mutator {
public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) {
    return limit == 0 ? 0 : static_cast<std::size_t>(random_.bits() % limit);
  }

  std::string bytes(std::string text) { return troupe::mutated(std::move(text), random_); }

  wire::Message message(const wire::Message& original) {
    wire::Message out;
    out.header = below(3) == 0 ? original.header : bytes(original.header);
    for (const wire::Frame& frame : original.frames) {
      const auto span = frame.bytes();
      std::string text(reinterpret_cast<const char*>(span.data()), span.size());
      if (below(2) == 0)
        text = bytes(text);
      if (below(20) != 0)
        out.frames.emplace_back(std::as_bytes(std::span(text)));
    }
    return out;
  }

private:
  Random random_;
};

Envelope question(std::uint64_t request) {
  Envelope envelope;
  envelope.set_protocol(remote::kProtocol);
  envelope.set_session(42);
  envelope.set_request(request);
  return envelope;
}

Envelope a_play() {
  Envelope envelope = question(2);
  auto& play = *envelope.mutable_play();
  play.add_environments(1);
  play.add_environments(0);
  play.set_resets(std::string("\1\0", 2));
  play.add_seeds(7);
  return envelope;
}

wire::Message with_actions(const Envelope& envelope) {
  auto message = remote::encode(envelope);
  const std::vector<double> actions{.1, .2, .3, .4};
  message.frames.emplace_back(std::as_bytes(std::span(actions)));
  return message;
}

} // namespace

TEST_CASE(
    "A peer's text is made printable and cut to the limit, and doing so again changes nothing") {
  Mutator mutate(4);
  for (int i = 0; i < 20'000; ++i) {
    const std::string text =
        mutate.bytes(mutate.bytes("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\n\x1b[0m"));
    const std::string out = remote::printable(text, 12);
    CHECK(out.size() <= 12);
    CHECK(out.find_first_of("\n\x1b\r\t") == std::string::npos);
    CHECK(remote::printable(out, 12) == out);
  }
}

TEST_CASE("A server survives a flood of garbage and continues to serve other clients") {
  auto context = std::make_shared<wire::Context>();
  const EnvironmentServer server(context, make_toy, {.environments = 3, .can_save = true});
  RemoteEnvironments remote({.endpoint = server.endpoint(), .environments = 1, .context = context});
  Batch batch(remote);
  reset_all(remote, batch, 1);
  wire::Socket stranger(*context, wire::SocketType::dealer);
  stranger.connect(server.endpoint());
  Envelope hello = question(1);
  hello.mutable_hello()->set_environments(2);
  stranger.send(remote::encode(hello), Clock::now());
  Mutator mutate(5);
  const auto play = with_actions(a_play());
  const auto greeting = remote::encode(hello);
  for (int i = 0; i < 2000; ++i) {
    auto message = mutate.message(i % 8 == 0 ? greeting : play);
    if (i % 5 == 0) { // within the session, with a new request
      Envelope next = a_play();
      next.set_request(static_cast<std::uint64_t>(i) + 10);
      message.header = next.SerializeAsString();
    }
    if (i % 97 == 0)
      message.frames.clear();
    stranger.send(std::move(message), Clock::now());
    if (i % 100 == 0)
      CHECK(remote.step(std::vector<double>(2), batch.results()) <= 1);
    if (batch.steps[0].step_type == StepType::last)
      reset_all(remote, batch, 1);
  }
  // The server reads from both peers in turn, so it may answer while part of the storm is still
  // queued.
  for (int i = 0; i < 100'000 && server.counters().garbage <= 100; ++i) {
    CHECK(remote.step(std::vector<double>(2, .5), batch.results()) <= 1);
    if (batch.steps[0].step_type == StepType::last)
      reset_all(remote, batch, 1);
  }
  CHECK(remote.step(std::vector<double>(2, .5), batch.results()) == 0);
  CHECK(server.counters().garbage > 100);
}
