#include <doctest/doctest.h>

#include <stdexcept>

#include "env/wire/deployment_keys.hpp"
#include "env/wire/publication.hpp"
#include "env/wire/socket.hpp"
#include "tests/env/wire/receive.hpp"
#include "tests/told.hpp"

namespace troupe::env::wire {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A test can rely on no interface but the loopback one; 0.0.0.0 counts as outside the loopback,
// too.
constexpr const char* kEverywhere = "tcp://0.0.0.0:*";

std::shared_ptr<const DeploymentKeys> made(std::vector<KeyPair> retired = {}) {
  return std::make_shared<DeploymentKeys>(
      DeploymentKeys{.own = make_key_pair(), .retired = std::move(retired)});
}

/// The endpoint as processes on this host can reach it.
std::string reached(const std::string& bound) {
  std::string endpoint = bound;
  return endpoint.replace(endpoint.find("0.0.0.0"), 7, "127.0.0.1");
}

void say(Socket& from, const std::string& text) {
  Message message;
  message.header = text;
  REQUIRE(from.send(std::move(message), Clock::now() + seconds(10)));
}

std::string hear(Socket& at, milliseconds patience = seconds(20)) {
  Message message;
  const auto end = Clock::now() + patience;
  while (at.try_receive(message) != Socket::Received::message)
    if (!at.wait(end))
      return "nothing";
  return message.header;
}

TEST_CASE("A deployment's keys alone let its processes communicate off the loopback interface") {
  const auto keys = made();
  Context context(1, keys);
  Socket server(context, SocketType::router);
  const std::string endpoint = server.bind(kEverywhere);
  CHECK_EQ(split_endpoint(endpoint).server_key, keys->own.public_key);
  Socket client(context, SocketType::dealer);
  client.connect(reached(endpoint));
  say(client, "hello");
  CHECK_EQ(hear(server), "hello");
  CHECK_EQ(server.strangers(), 0);
}

TEST_CASE("Publications off the loopback interface are encrypted") {
  const auto keys = made();
  Context context(1, keys);
  Publisher publisher(context, kEverywhere);
  Subscriber subscriber(context, reached(publisher.endpoint()), 4);
  const std::vector<float> values{1, 2, 3};
  publisher.publish(7, values);
  const auto end = Clock::now() + seconds(20);
  std::optional<Received> got;
  while (!(got = subscriber.wait(Clock::now() + milliseconds(20)))) {
    REQUIRE(Clock::now() < end);
    publisher.repeat();
  }
  CHECK_EQ(got->version, 7);

  Context stranger;
  const std::string plain = split_endpoint(reached(publisher.endpoint())).address;
  Subscriber eavesdropper(stranger, plain, 4);
  for (int i = 0; i < 20; ++i) {
    publisher.repeat();
    CHECK_FALSE(eavesdropper.wait(Clock::now() + milliseconds(10)));
  }
}

TEST_CASE("Deployment keys leave endpoints on the loopback interface unencrypted") {
  Context context(1, made());
  Socket near(context, SocketType::router);
  Socket far(context, SocketType::router);
  const std::string plain = near.bind("tcp://127.0.0.1:*");
  CHECK_EQ(split_endpoint(plain).server_key, "");
  Socket client(context, SocketType::dealer);
  client.connect(reached(far.bind(kEverywhere)));
  say(client, "encrypted");
  CHECK_EQ(hear(far), "encrypted");
  Context without;
  Socket other(without, SocketType::dealer);
  other.connect(plain);
  say(other, "plain");
  CHECK_EQ(hear(near), "plain");
}

TEST_CASE("A socket may bind an unencrypted endpoint on the loopback interface and then an "
          "encrypted endpoint off it") {
  const auto keys = made();
  Context context(1, keys);
  Socket server(context, SocketType::router);
  const std::string plain = server.bind("tcp://127.0.0.1:*");
  const std::string encrypted = server.bind(kEverywhere);
  CHECK_EQ(split_endpoint(plain).server_key, "");
  CHECK_EQ(split_endpoint(encrypted).server_key, keys->own.public_key);
  Context without;
  Socket near(without, SocketType::dealer);
  Socket far(context, SocketType::dealer);
  near.connect(plain);
  far.connect(reached(encrypted));
  for (Socket* const client : {&near, &far, &near}) {
    say(*client, "question");
    Message message = receive(server);
    CHECK_EQ(message.header, "question");
    message.header = "answer";
    REQUIRE(server.send(std::move(message), Clock::now() + seconds(10)));
    CHECK_EQ(hear(*client), "answer");
  }
  Socket stranger(without, SocketType::dealer); // does not encrypt
  stranger.connect(split_endpoint(reached(encrypted)).address);
  say(stranger, "let me in");
  CHECK_EQ(hear(server, milliseconds(200)), "nothing");
}

TEST_CASE("Without keys, no socket binds off the loopback interface") {
  Context context;
  Socket server(context, SocketType::router);
  CHECK_THROWS_WITH_AS(server.bind(kEverywhere), doctest::Contains("troupe keys cluster DIR"),
                       std::invalid_argument);
  CHECK_THROWS_AS(Publisher(context, kEverywhere), std::invalid_argument);
  CHECK_THROWS_AS(server.bind("tcp://127.example.org:7400"), std::invalid_argument);
}

TEST_CASE("A host name other than localhost does not count as the loopback interface") {
  const std::string key = "2M3+]@*#WxAtyFYmLOdnfh1!KiG.6I0IX7:O-503"; // contains # and :
  for (const char* near : {"tcp://127.0.0.1:7400", "tcp://127.1.2.3:*", "tcp://localhost:7400",
                           "tcp://[::1]:7400", "ipc:///run/x", "inproc://x"})
    CHECK(is_loopback(near));
  for (const char* far : {"tcp://127.example.org:7400", "tcp://0.0.0.0:*", "tcp://10.0.0.1:127",
                          "tcp://*:7400", "tcp://localhost.example.org:7400", "tcp://127.0.0.1", "",
                          "tcp://127.0.0.1:1;10.0.0.1:7400", "tcp://127.0.0.1:1:7400",
                          "tcp://127.0.0.999:7400", "tcp://127.1:7400"})
    CHECK_FALSE(is_loopback(far));
  CHECK(is_loopback(with_server_key("tcp://127.0.0.1:7400", key)));
  const KeyedEndpoint parts = split_endpoint(with_server_key("tcp://10.0.0.1:7400", key));
  CHECK_EQ(parts.address, "tcp://10.0.0.1:7400");
  CHECK_EQ(parts.server_key, key);
  CHECK_EQ(split_endpoint("ipc:///run/a#b").address, "ipc:///run/a#b");
}

TEST_CASE("Connecting to an encrypted endpoint without keys fails, and the error names the option "
          "--keys") {
  Context context;
  Socket client(context, SocketType::dealer);
  const std::string endpoint = with_server_key("tcp://127.0.0.1:7400", make_key_pair().public_key);
  CHECK_THROWS_WITH_AS(client.connect(endpoint), doctest::Contains("--keys DIR"),
                       std::invalid_argument);
  CHECK_THROWS_AS(client.connect("tcp://127.0.0.1:7400#short"), std::invalid_argument);
}

TEST_CASE("Processes with another deployment's keys are refused and reported once") {
  Told told;
  auto keys = std::make_shared<DeploymentKeys>(*made());
  keys->on_stranger = told.listener();
  Context context(1, keys);
  Context other(1, made());
  Socket server(context, SocketType::router);
  const std::string endpoint = reached(server.bind(kEverywhere));
  // One client assumes that the address belongs to its own deployment, the other has learned the
  // server's key.
  Socket mistaken(other, SocketType::dealer);
  Socket informed(other, SocketType::dealer);
  mistaken.connect(with_server_key(split_endpoint(endpoint).address, other.keys()->own.public_key));
  informed.connect(endpoint);
  say(mistaken, "let me in");
  say(informed, "let me in");
  const auto end = Clock::now() + seconds(20);
  while (server.strangers() < 2) {
    REQUIRE(Clock::now() < end);
    CHECK_EQ(hear(server, milliseconds(5)), "nothing");
  }
  CHECK_EQ(told.all().size(), 1);
}

TEST_CASE("While keys are rotated, old and new processes reach each other in both directions") {
  const KeyPair before = make_key_pair();
  Context old_context(
      1, std::make_shared<DeploymentKeys>(DeploymentKeys{.own = before, .retired = {}}));
  Context new_context(1, made({before}));
  for (const auto& [serving, asking] :
       {std::pair(&old_context, &new_context), std::pair(&new_context, &old_context)}) {
    Socket server(*serving, SocketType::router);
    Socket client(*asking, SocketType::dealer);
    const std::string endpoint = reached(server.bind(kEverywhere));
    client.connect(endpoint);
    say(client, "still here");
    CHECK_EQ(hear(server), "still here");
  }
}

} // namespace
} // namespace troupe::env::wire
