#include <doctest/doctest.h>

#include "env/random.hpp"
#include "env/remote/environment_server.hpp"
#include "tests/env/remote/fake_peer.hpp"
#include "tests/env/remote/toy.hpp"

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

  /// One to four random edits: flipped bytes, cuts or copies of a piece.
  std::string bytes(std::string text) {
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
      const std::size_t at = below(text.size() + 1);
      const std::size_t count = below(std::min<std::size_t>(text.size() - at, 16) + 1);
      switch (below(3)) {
      case 0:
        if (at < text.size())
          text[at] = static_cast<char>(random_.bits());
        break;
      case 1:
        text.erase(at, count);
        break;
      default:
        text.insert(below(text.size() + 1), text.substr(at, count));
      }
    }
    return text;
  }

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

TEST_CASE("A mutated welcome is decoded completely or refused") {
  Envelope hello = question(1);
  hello.mutable_hello()->set_environments(2);
  const auto continuous = *FakePeer::usual(hello);
  Envelope envelope = remote::decode_header(continuous);
  *envelope.mutable_welcome()->mutable_spec() = remote::encode_spec(Chooser(mixed_action()).spec());
  envelope.mutable_welcome()->set_row_bytes(24);
  const auto choices = remote::encode(envelope);
  REQUIRE(remote::decode_welcome(envelope, choices, 2, 1 << 20).spec.action == mixed_action());
  Mutator mutate(1);
  int refused = 0;
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto message = mutate.message(i % 2 == 0 ? continuous : choices);
    try {
      const auto invitation =
          remote::decode_welcome(remote::decode_header(message), message, 2, 1 << 20);
      CHECK(invitation.spec.observation_bytes() <= (1U << 20));
      CHECK(problem_of(invitation.spec.action).empty());
      ++read;
    } catch (const remote::ProtocolError&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
  CHECK(read > 1000);
}

TEST_CASE("A mutated answer is decoded completely or refused") {
  Envelope reset = question(2);
  reset.mutable_play()->set_resets(std::string("\1\1", 2));
  Envelope failed;
  const auto original = *FakePeer::usual(reset);
  failed.ParseFromString(original.header);
  auto& failure = *failed.mutable_played()->add_failures();
  failure.set_row(1);
  failure.set_message("exploded");
  wire::Message with_failure = remote::encode(failed);
  std::vector<remote::ResultRow> rows(2);
  rows[1].step_type = remote::kFailed;
  with_failure.frames.emplace_back(std::as_bytes(std::span(rows)));
  with_failure.frames.emplace_back(std::size_t{16});
  std::fill(with_failure.frames[1].bytes().begin(), with_failure.frames[1].bytes().end(),
            std::byte{0});
  const std::vector<remote::Asked> asked{{0, true}, {1, true}};
  const auto spec = FakePeer::spec();
  Mutator mutate(2);
  int refused = 0;
  int read = 0;
  remote::Results results;
  for (int i = 0; i < 20'000; ++i) {
    const auto message = mutate.message(i % 2 == 0 ? original : with_failure);
    try {
      const Envelope envelope = remote::decode_header(message);
      remote::decode_played(envelope.played(), message, spec, asked, results);
      REQUIRE(results.rows.size() == 2);
      REQUIRE(results.failures.size() == 2);
      CHECK(results.observations.size() == 16);
      ++read;
    } catch (const remote::ProtocolError&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
  CHECK(read > 1000);
}

TEST_CASE("A mutated play is decoded completely or refused") {
  const auto original = with_actions(a_play());
  Mutator mutate(3);
  int refused = 0;
  int read = 0;
  remote::Plays plays;
  for (int i = 0; i < 20'000; ++i) {
    const auto message = mutate.message(original);
    try {
      const Envelope envelope = remote::decode_header(message);
      remote::decode_play(envelope.play(), message, 2, 2, plays);
      for (const std::size_t environment : plays.environments)
        CHECK(environment < 2);
      CHECK(plays.actions.size() == 2 * plays.environments.size());
      CHECK(plays.seeds.size() == plays.environments.size());
      ++read;
    } catch (const remote::ProtocolError&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
  CHECK(read > 1000);
}

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
