#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <limits>

#include "env/remote/environment_server.hpp"
#include "tests/env/remote/fake_peer.hpp"
#include "tests/env/remote/toy.hpp"
#include "tests/text.hpp"

using namespace troupe::env;
using namespace troupe::tests;
using remote::Clock;
using remote::message::Envelope;
using troupe::error_of;
using Answer = FakePeer::Answer;

namespace {

RemoteOptions impatient(const std::string& endpoint) {
  return {.endpoint = endpoint,
          .environments = 2,
          .connect_deadline = 2000ms,
          .deadline = 2000ms,
          .silence = 2000ms,
          .retry_interval = 500ms};
}

/// The client's complaint about a peer whose every answer to a step is altered by `change`.
std::string says_of_step(const std::function<void(Envelope&, wire::Message&)>& change) {
  wire::Context context;
  FakePeer peer(context, [&](const Envelope& question, Answer usual) {
    if (question.has_play() && question.play().resets().empty()) {
      Envelope answer;
      answer.ParseFromString(usual->header);
      change(answer, *usual);
      answer.SerializeToString(&usual->header);
    }
    return usual;
  });
  RemoteEnvironments remote(impatient(peer.endpoint()));
  Batch batch(remote);
  reset_all(remote, batch, 1);
  const std::string text = error_of([&] { remote.step(std::vector<double>(2), batch.results()); });
  CHECK(text.find(text.empty() ? "" : peer.endpoint()) != std::string::npos);
  // The next reset of all environments reconnects.
  CHECK(error_of([&] { reset_all(remote, batch, 1); }).empty());
  return text;
}

std::string says_of_welcome(const std::function<void(Envelope&, wire::Message&)>& change) {
  wire::Context context;
  FakePeer peer(context, [&](const Envelope& question, Answer usual) {
    if (question.has_hello()) {
      Envelope answer;
      answer.ParseFromString(usual->header);
      change(answer, *usual);
      answer.SerializeToString(&usual->header);
    }
    return usual;
  });
  const auto text = error_of([&] { RemoteEnvironments remote(impatient(peer.endpoint())); });
  CHECK(text.find(peer.endpoint()) != std::string::npos);
  return text;
}

/// A client that sends without checking anything.
class BareClient {
public:
  BareClient(wire::Context& context, const std::string& endpoint)
      : socket_(context, wire::SocketType::dealer) {
    socket_.connect(endpoint);
  }

  wire::Message ask(Envelope question, const std::vector<double>& actions) {
    question.set_protocol(remote::kProtocol);
    question.set_session(42);
    auto message = remote::encode(question);
    if (question.has_play())
      message.frames.emplace_back(std::as_bytes(std::span(actions)));
    socket_.send(std::move(message), Clock::now());
    wire::Message answer;
    REQUIRE(socket_.wait(Clock::now() + 5s));
    REQUIRE(socket_.try_receive(answer) == wire::Socket::Received::message);
    return answer;
  }

private:
  wire::Socket socket_;
};

void set_row(wire::Message& message, std::size_t row, const remote::ResultRow& result) {
  std::memcpy(message.frames[0].bytes().data() + row * sizeof result, &result, sizeof result);
}

} // namespace

TEST_CASE("Valid answers of a peer are accepted") {
  CHECK(says_of_step([](Envelope&, wire::Message&) {}).empty());
}

TEST_CASE("An invalid spec is refused, and the error names the peer and the invalid field") {
  const auto has = [](const std::string& text, const char* part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  const auto spec = [](const std::function<void(remote::message::Spec&)>& change) {
    return says_of_welcome([&](Envelope& answer, wire::Message&) {
      change(*answer.mutable_welcome()->mutable_spec());
    });
  };
  has(spec([](auto& s) { s.set_name("a\nb"); }), "not a valid name of an environment");
  has(spec([](auto& s) { s.clear_observations(); }), "0 observations");
  has(spec([](auto& s) { s.mutable_observations(0)->set_name(""); }),
      "not a valid name of an observation");
  has(spec([](auto& s) { *s.add_observations() = s.observations(0); }), "two observations");
  has(spec([](auto& s) {
        s.mutable_observations(0)->set_type(static_cast<remote::message::ElementType>(9));
      }),
      "element type 9");
  has(spec([](auto& s) { s.mutable_observations(0)->add_shape(0); }), "dimension of 0");
  has(spec([](auto& s) { s.mutable_observations(0)->add_shape(-4); }), "dimension of -4");
  has(spec([](auto& s) {
        for (int i = 0; i < 4; ++i)
          s.mutable_observations(0)->add_shape(std::int64_t{1} << 62);
      }),
      "max_message_bytes");
  has(spec([](auto& s) {
        for (int i = 0; i < 9; ++i)
          s.mutable_observations(0)->add_shape(1);
      }),
      "9 dimensions");
  has(spec([](auto& s) { s.add_action_minimum(0); }), "2 action minima and 1 maxima");
  has(spec([](auto& s) { s.set_action_minimum(0, NAN); }), "the minimum must be below");
  has(spec([](auto& s) { s.set_action_minimum(0, 2); }), "the minimum must be below");
  has(spec([](auto& s) {
        s.clear_action_minimum();
        s.clear_action_maximum();
      }),
      "0 action dimensions");
  // The fake peer's one action is bounded by -1 and 1.
  const auto choices = [&](std::vector<std::int64_t> counts, double low, double high) {
    return spec([=](auto& s) {
      s.mutable_action_choices()->Assign(counts.begin(), counts.end());
      s.set_action_minimum(0, low);
      s.set_action_maximum(0, high);
    });
  };
  has(choices({2, 2}, 0, 1), "2 numbers of choices for 1 action dimensions");
  has(choices({1}, 0, 0), "action[0] has 1 choices; it must have 2 or more");
  has(choices({-3}, 0, 2), "action[0] has -3 choices; it must have 2 or more");
  has(choices({std::numeric_limits<std::int64_t>::min()}, 0, 1), "it must have 2 or more");
  has(choices({3}, -1, 1), "action[0] has 3 choices and the bounds -1.000000 and 1.000000");
  has(choices({3}, 0, 3), "they must be 0 and 2");
  has(choices({3}, 0, NAN), "they must be 0 and 2");
  has(spec([](auto& s) { s.set_frame_stack(0); }), "frame_stack is 0");
  has(spec([](auto& s) { s.set_action_repeat(0); }), "action_repeat is 0");
  has(spec([](auto& s) { s.set_episode_steps(-1); }), "episode_steps is -1");
  has(spec([](auto& s) { s.set_control_timestep_seconds(INFINITY); }), "control_timestep_seconds");
  has(says_of_welcome([](Envelope& a, wire::Message&) { a.mutable_welcome()->set_row_bytes(16); }),
      "8 bytes by its arrays and 16 by row_bytes");
  has(says_of_welcome(
          [](Envelope& a, wire::Message&) { a.mutable_welcome()->set_environments(3); }),
      "offers 3 environments where 2");
  has(says_of_welcome([](Envelope& a, wire::Message&) {
        a.mutable_welcome()->mutable_heartbeat()->set_port(70000);
      }),
      "heartbeat port");
  has(says_of_welcome([](Envelope&, wire::Message& m) { m.frames.emplace_back(std::size_t{8}); }),
      "1 data frames");
}

TEST_CASE(
    "An answer that contradicts the spec ends the connection, and the next reset reconnects") {
  const auto has = [](const std::string& text, const char* part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  has(says_of_step([](Envelope&, wire::Message& m) { m.frames[1] = wire::Frame(std::size_t{15}); }),
      "it contradicts its spec: its observations have 15 bytes");
  has(says_of_step([](Envelope&, wire::Message& m) { m.frames[0] = wire::Frame(std::size_t{24}); }),
      "its results have 24 bytes");
  has(says_of_step([](Envelope&, wire::Message& m) { m.frames.pop_back(); }), "1 data frames");
  has(says_of_step([](Envelope&, wire::Message& m) { m.frames.emplace_back(std::size_t{1}); }),
      "exceeds the limits");
  has(says_of_step([](Envelope&, wire::Message& m) { set_row(m, 1, {.step_type = 0}); }),
      "environment 1 answers a step with step type 0");
  has(says_of_step([](Envelope&, wire::Message& m) { set_row(m, 0, {.step_type = -7}); }),
      "step type -7");
  has(says_of_step(
          [](Envelope& a, wire::Message&) { a.mutable_played()->add_failures()->set_row(1); }),
      "failure of row 1");
  has(says_of_step([](Envelope& a, wire::Message&) { a.mutable_saved(); }), "of kind 12, not 11");
  has(says_of_step([](Envelope& a, wire::Message&) { a.set_request(a.request() + 1); }),
      "only 3 were asked");
  has(says_of_step([](Envelope& a, wire::Message&) { a.set_protocol(7); }),
      "version 7 of the protocol and this side version 1");
  has(says_of_step([](Envelope& a, wire::Message&) {
        a.mutable_refused()->set_message("line\nbreak \xff and \x1b[31m");
      }),
      "line?break ? and ?[31m");
}

TEST_CASE("A header that is not Protobuf is refused, and the error names the peer") {
  wire::Context context;
  FakePeer peer(context, [](const Envelope&, Answer) {
    wire::Message garbage;
    garbage.header = "\xff\xff\xff GET / HTTP/1.1";
    return Answer(std::move(garbage));
  });
  const auto text = error_of([&] { RemoteEnvironments remote(impatient(peer.endpoint())); });
  CHECK(text.find("not a Protobuf Envelope") != std::string::npos);
  CHECK(text.find(peer.endpoint()) != std::string::npos);
}

TEST_CASE("A number that is not finite fails only its own environment") {
  wire::Context context;
  FakePeer peer(context, [&](const Envelope& question, Answer usual) {
    if (question.has_play() && question.play().resets().empty())
      set_row(*usual, 1, {.reward = NAN, .discount = 1, .step_type = 1});
    return usual;
  });
  RemoteEnvironments remote(impatient(peer.endpoint()));
  Batch batch(remote);
  reset_all(remote, batch, 1);
  CHECK(remote.step(std::vector<double>(2), batch.results()) == 1);
  CHECK(remote.failure(0).empty());
  CHECK(remote.failure(1).find("reward is nan") != std::string::npos);
  const auto observation = says_of_step([](Envelope&, wire::Message& m) {
    const double bad = std::numeric_limits<double>::infinity();
    std::memcpy(m.frames[1].bytes().data(), &bad, sizeof bad);
  });
  CHECK(observation.empty()); // reported by failure(), not thrown
}

TEST_CASE("A peer that stalls is given up at the deadline, and the error names the option") {
  wire::Context context;
  FakePeer peer(context, [](const Envelope& question, Answer usual) {
    return question.has_hello() ? std::move(usual) : Answer();
  });
  RemoteOptions options = impatient(peer.endpoint());
  options.deadline = 60ms;
  RemoteEnvironments remote(options);
  Batch batch(remote);
  const auto begin = Clock::now();
  const auto text = error_of([&] { reset_all(remote, batch, 1); });
  const auto took = Clock::now() - begin;
  CHECK(text.find("no answer to a turn of 2 environments within 60 ms (deadline)")
        != std::string::npos);
  CHECK(took >= 60ms);
  CHECK(took < 1000ms); // leaves room for a busy machine
}

TEST_CASE(
    "If no server answers, connecting fails at connect_deadline, and the error names the option") {
  const auto begin = Clock::now();
  RemoteOptions options = impatient("ipc:///tmp/troupe-nobody-serves-here.ipc");
  options.connect_deadline = 60ms;
  const auto text = error_of([&] { make_remote(options); });
  CHECK(text.find("ipc:///tmp/troupe-nobody-serves-here.ipc") != std::string::npos);
  CHECK(text.find("within 60 ms (connect_deadline)") != std::string::npos);
  CHECK(Clock::now() - begin < 1000ms);
}

TEST_CASE("A peer whose heartbeat stops is given up before the deadline") {
  wire::Context context;
  // The peer announces a heartbeat port at which nothing answers.
  FakePeer peer(context, [&](const Envelope& question, Answer usual) {
    if (question.has_ping() || question.has_play())
      return Answer();
    if (question.has_hello()) {
      Envelope answer;
      answer.ParseFromString(usual->header);
      auto& heartbeat = *answer.mutable_welcome()->mutable_heartbeat();
      heartbeat.set_port(9);
      heartbeat.set_silence_milliseconds(1000);
      answer.SerializeToString(&usual->header);
    }
    return usual;
  });
  RemoteOptions options = impatient(peer.endpoint());
  options.deadline = 60'000ms;
  options.silence = 80ms;
  options.heartbeat_interval = 20ms;
  RemoteEnvironments remote(options);
  Batch batch(remote);
  const auto begin = Clock::now();
  const auto text = error_of([&] { reset_all(remote, batch, 1); });
  CHECK(text.find("no heartbeat for 80 ms (silence)") != std::string::npos);
  CHECK(Clock::now() - begin < 2000ms);
}

TEST_CASE("A request that is lost is sent again, and a repeated answer is ignored") {
  wire::Context context;
  std::atomic<int> resets = 0;
  std::atomic<int> steps = 0;
  FakePeer peer(context, [&](const Envelope& question, Answer usual) {
    if (!question.has_play())
      return usual;
    if (!question.play().resets().empty())
      return ++resets == 1 ? Answer() : std::move(usual); // the first one is lost on the way
    if (++steps == 1) { // arrives together with another answer to the reset
      Envelope late;
      late.ParseFromString(usual->header);
      late.set_request(late.request() - 1);
      late.SerializeToString(&usual->header);
      set_row(*usual, 0, {.reward = 9, .discount = 1, .step_type = 0});
    }
    return usual;
  });
  RemoteOptions options = impatient(peer.endpoint());
  options.retry_interval = 20ms;
  RemoteEnvironments remote(options);
  Batch batch(remote);
  reset_all(remote, batch, 1);
  CHECK(resets >= 2);
  CHECK(batch.steps[0].step_type == StepType::first);
  CHECK(remote.step(std::vector<double>(2), batch.results()) == 0);
  CHECK(steps >= 2); // the repeated answer did not count as the step's
  CHECK(batch.steps[0].step_type == StepType::mid);
  CHECK(batch.steps[0].reward == 1);
}

TEST_CASE("A server answers a repeated request with the same answer and plays it once") {
  auto context = std::make_shared<wire::Context>();
  const EnvironmentServer server(context, make_toy);
  BareClient client(*context, server.endpoint());
  const auto ask = [&](const Envelope& question, const std::vector<double>& actions) {
    return client.ask(question, actions);
  };
  Envelope hello;
  hello.set_request(1);
  hello.mutable_hello()->set_environments(1);
  const auto welcome = ask(hello, {});
  CHECK(ask(hello, {}).header == welcome.header);
  CHECK(server.counters().clients == 1);
  Envelope reset;
  reset.set_request(2);
  reset.mutable_play()->set_resets("\1");
  reset.mutable_play()->add_seeds(3);
  ask(reset, {0, 0});
  Envelope step;
  step.set_request(3);
  step.mutable_play();
  const auto once = ask(step, {.5, 0});
  const auto twice = ask(step, {.5, 0});
  CHECK(once.header == twice.header);
  REQUIRE(twice.frames.size() == 2);
  const auto bytes = [](const wire::Message& m) {
    const auto span = m.frames[1].bytes();
    return std::vector<std::byte>(span.begin(), span.end());
  };
  CHECK(bytes(once) == bytes(twice));
  CHECK(server.counters().turns == 2);
}

TEST_CASE("An invalid choice from a client fails its environment and never reaches it") {
  auto context = std::make_shared<wire::Context>();
  const auto make = [] { return std::make_unique<Chooser>(mixed_action()); };
  const EnvironmentServer server(context, make, {.environments = 2});
  BareClient client(*context, server.endpoint());
  Envelope question;
  question.set_request(1);
  question.mutable_hello()->set_environments(2);
  client.ask(question, {});
  std::uint64_t request = 1;
  for (const double bad : {0.5, -1.0, 3.0, 1e9, std::nan(""), -HUGE_VAL}) {
    CAPTURE(bad);
    question.set_request(++request);
    question.mutable_play()->set_resets("\1\1");
    question.mutable_play()->add_seeds(3);
    question.mutable_play()->add_seeds(4);
    client.ask(question, std::vector<double>(6));
    question.set_request(++request);
    question.mutable_play()->Clear();
    const auto message = client.ask(question, {bad, .5, 1, 2, -.5, 1});
    Envelope answer;
    answer.ParseFromString(message.header);
    REQUIRE(answer.played().failures_size() == 1);
    CHECK(answer.played().failures(0).row() == 0);
    CHECK(answer.played().failures(0).message().find("; it must be a whole number from 0 to 2")
          != std::string::npos);
    std::array<double, 6> seen{};
    REQUIRE(message.frames[1].bytes().size() == sizeof seen);
    std::memcpy(seen.data(), message.frames[1].bytes().data(), sizeof seen);
    CHECK(seen == std::array<double, 6>{0, 0, 0, 2, -.5, 1});
  }
  CHECK(server.counters().garbage == 0);
  CHECK(server.counters().failures == 6);
}
