#include "env/wire/socket.hpp"

#include "tests/env/wire/receive.hpp"
#include "tests/eventually.hpp"
#include "tests/temporary_folder.hpp"
#include <doctest/doctest.h>

namespace troupe::env::wire {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Message message_of(const std::string& header, const std::vector<std::string>& parts) {
  Message message;
  message.header = header;
  for (const std::string& part : parts)
    message.frames.emplace_back(std::span<const std::byte>(bytes_of(part)));
  return message;
}

std::string text_of(const Frame& frame) {
  return {reinterpret_cast<const char*>(frame.bytes().data()), frame.size()};
}

// The worked example of env/wire/README.md.
TEST_CASE("A router answers the dealer that asked") {
  Context context;
  Socket server(context, SocketType::router);
  const std::string endpoint = server.bind("tcp://127.0.0.1:*");
  Socket client(context, SocketType::dealer);
  client.connect(endpoint);
  REQUIRE(client.send(message_of("question", {"a", "", std::string(100000, 'x')}),
                      Clock::now() + seconds(5)));
  Message question = receive(server);
  CHECK_EQ(question.header, "question");
  REQUIRE_EQ(question.frames.size(), 3);
  CHECK_EQ(text_of(question.frames[0]), "a");
  CHECK_EQ(question.frames[1].size(), 0);
  CHECK_EQ(text_of(question.frames[2]), std::string(100000, 'x'));
  Message answer = message_of("answer", {});
  answer.peer = question.peer;
  REQUIRE(server.send(std::move(answer), Clock::now() + seconds(5)));
  const Message got = receive(client);
  CHECK_EQ(got.header, "answer");
  CHECK(got.frames.empty());
}

TEST_CASE("A view is sent in place and keeps its data alive only until it is sent") {
  const TemporaryFolder folder;
  const std::string endpoint = "ipc://" + (folder / "s").string();
  Context context;
  auto data = std::make_shared<const std::vector<std::byte>>(bytes_of(std::string(50000, 'q')));
  const std::weak_ptr<const std::vector<std::byte>> alive = data;
  Socket client(context, SocketType::dealer);
  client.connect(endpoint); // nothing is sent before a server binds it
  Message message;
  message.frames.push_back(Frame::view(*data, data));
  CHECK((std::as_const(message.frames[0]).bytes().data() == data->data()));
  data.reset();
  REQUIRE(client.send(std::move(message), Clock::now() + seconds(5)));
  message = {};
  CHECK_FALSE(alive.expired()); // the queue holds the data itself, not a copy
  Socket server(context, SocketType::router);
  server.bind(endpoint);
  CHECK_EQ(text_of(receive(server).frames.at(0)), std::string(50000, 'q'));
  CHECK(testing::comes_true([&] { return alive.expired(); }));
}

TEST_CASE("Small and large frames keep their content when they are moved") {
  for (const std::size_t size : {0U, 5U, 33U, 34U, 5000U}) {
    Frame a(std::span<const std::byte>(bytes_of(std::string(size, 'm'))));
    Frame b(std::move(a));
    Frame c;
    c = std::move(b);
    CHECK_EQ(text_of(c), std::string(size, 'm'));
  }
}

TEST_CASE("Messages beyond the limits are dropped completely, and a frame far beyond "
          "them ends its connection") {
  Context context;
  Socket server(context, SocketType::router,
                {.max_frame_bytes = 1000, .max_frames = 3, .max_header_bytes = 10});
  Socket client(context, SocketType::dealer);
  const std::string endpoint = server.bind("tcp://127.0.0.1:*");
  client.connect(endpoint);
  const auto send = [&](Message&& message) {
    REQUIRE(client.send(std::move(message), Clock::now() + seconds(5)));
  };
  send(message_of("x", {"1", "2", "3", "4"}));
  send(message_of(std::string(11, 'h'), {}));
  send(message_of("fine", {"1", "2", "3"}));
  int oversized = 0;
  Message message;
  for (;;) {
    const auto got = server.try_receive(message);
    if (got == Socket::Received::message)
      break;
    if (got == Socket::Received::nothing)
      REQUIRE(server.wait(Clock::now() + seconds(20)));
    else
      ++oversized;
  }
  CHECK_EQ(oversized, 2);
  CHECK_EQ(message.header, "fine");
  CHECK_EQ(message.frames.size(), 3);
  send(message_of("x", {std::string(2000, 'l')}));
  REQUIRE(server.wait(Clock::now() + seconds(20)));
  CHECK(server.try_receive(message) == Socket::Received::oversized);
  CHECK_EQ(server.disconnected(), 0);
  send(message_of("x", {std::string(100'000, 'l')}));
  CHECK(testing::comes_true([&] { return server.disconnected() == 1; }));
  Socket other(context, SocketType::dealer); // a new connection works
  other.connect(endpoint);
  REQUIRE(other.send(message_of("after", {}), Clock::now() + seconds(5)));
  REQUIRE(server.wait(Clock::now() + seconds(20)));
  REQUIRE(server.try_receive(message) == Socket::Received::message);
  CHECK_EQ(message.header, "after");
}

TEST_CASE("Waiting ends at the deadline") {
  Context context;
  Socket server(context, SocketType::router);
  server.bind("tcp://127.0.0.1:*");
  const auto begun = Clock::now();
  CHECK_FALSE(server.wait(begun + milliseconds(30)));
  CHECK_GE(Clock::now(), begun + milliseconds(30));
}

TEST_CASE(
    "A port in use and a public address are refused, and the error names the reason and a remedy") {
  Context context;
  Socket first(context, SocketType::router);
  const std::string endpoint = first.bind("tcp://127.0.0.1:*");
  Socket second(context, SocketType::router);
  CHECK_THROWS_WITH_AS(second.bind(endpoint),
                       doctest::Contains((endpoint + ": Address already in use; end").c_str()),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(second.bind("tcp://0.0.0.0:*"), doctest::Contains("loopback"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(second.bind("tcp://*:5000"), doctest::Contains("loopback"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(second.bind("tcp://127.0.0.1:none"), doctest::Contains("the form is"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(second.connect("nonsense"), doctest::Contains("nonsense"),
                       std::runtime_error);
  Socket open(context, SocketType::router, {.allow_other_hosts = true});
  CHECK(open.bind("tcp://0.0.0.0:*").starts_with("tcp://0.0.0.0:"));
}

} // namespace
} // namespace troupe::env::wire
