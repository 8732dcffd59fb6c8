#include <doctest/doctest.h>

#include <cstring>

#include "env/wire/publication.hpp"
#include "env/wire/socket.hpp"
#include "tests/env/wire/receive.hpp"
#include "tests/told.hpp"

namespace troupe::env::wire {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Waits until the server has counted the refusals of unknown peers.
void wait_for_strangers(Socket& server, std::int64_t count) {
  const auto end = Clock::now() + seconds(20);
  while (server.strangers() < count) {
    REQUIRE(Clock::now() < end);
    CHECK_FALSE(server.wait(Clock::now() + milliseconds(5)));
  }
}

void ask(Socket& client, const std::string& header, std::size_t bytes = 0) {
  Message message;
  message.header = header;
  if (bytes > 0) {
    message.frames.emplace_back(bytes);
    std::memset(message.frames[0].bytes().data(), 5, bytes);
  }
  REQUIRE(client.send(std::move(message), Clock::now() + seconds(5)));
}

TEST_CASE("Peers with the right keys exchange messages and share memory") {
  Context context;
  const KeyPair server_keys = make_key_pair();
  const KeyPair client_keys = make_key_pair();
  Socket server(context, SocketType::router,
                {.max_frame_bytes = 100000,
                 .shared_memory = SharedMemory{},
                 .server_keys = ServerKeys{server_keys, {client_keys.public_key}}});
  const std::string endpoint = server.bind("tcp://127.0.0.1:*");
  Socket client(context, SocketType::dealer,
                {.max_frame_bytes = 100000,
                 .shared_memory = SharedMemory{},
                 .client_keys = ClientKeys{client_keys, server_keys.public_key}});
  client.connect(endpoint);
  for (int i = 0; i < 1000 && server.shared_counters().frames_received == 0; ++i) {
    ask(client, "question", 100000); // the largest size that is allowed
    Message got = receive(server);
    CHECK_EQ(got.frames.at(0).size(), 100000);
    CHECK(std::as_const(got.frames[0]).bytes()[99999] == std::byte{5});
    got.header = "answer";
    REQUIRE(server.send(std::move(got), Clock::now() + seconds(5)));
    CHECK_EQ(receive(client).header, "answer");
  }
  CHECK_GT(server.shared_counters().frames_received, 0);
  CHECK_EQ(server.strangers(), 0);
}

TEST_CASE("Unknown peers are refused and reported once, and the server continues to serve") {
  Context context;
  const KeyPair server_keys = make_key_pair();
  const KeyPair client_keys = make_key_pair();
  const KeyPair stranger_keys = make_key_pair();
  Told told;
  Socket server(context, SocketType::router,
                {.server_keys = ServerKeys{server_keys, {client_keys.public_key}},
                 .on_stranger = told.listener()});
  const std::string endpoint = server.bind("tcp://127.0.0.1:*");
  const auto refused = [&](const SocketOptions& options) {
    Context elsewhere;
    Socket stranger(elsewhere, SocketType::dealer, options);
    stranger.connect(endpoint);
    ask(stranger, "let me in");
    wait_for_strangers(server, server.strangers() + 1);
    CHECK_FALSE(stranger.wait(Clock::now() + milliseconds(20)));
  };
  refused({.client_keys = ClientKeys{stranger_keys, server_keys.public_key}}); // not allowed
  refused({});                                                                 // plaintext
  refused({.client_keys = ClientKeys{client_keys, stranger_keys.public_key}}); // another server
  REQUIRE_EQ(told.all().size(), 1);
  CHECK_NE(told.all()[0].find(stranger_keys.public_key), std::string::npos);
  Socket client(context, SocketType::dealer,
                {.client_keys = ClientKeys{client_keys, server_keys.public_key}});
  client.connect(endpoint);
  ask(client, "question");
  CHECK_EQ(receive(server).header, "question");
}

TEST_CASE("Each socket of a context has its own list of allowed keys") {
  Context context;
  const KeyPair server_keys = make_key_pair();
  const KeyPair a = make_key_pair();
  const KeyPair b = make_key_pair();
  Socket for_a(context, SocketType::router,
               {.server_keys = ServerKeys{server_keys, {a.public_key}}});
  Socket for_b(context, SocketType::router,
               {.server_keys = ServerKeys{server_keys, {b.public_key}}});
  const std::string endpoint_a = for_a.bind("tcp://127.0.0.1:*");
  const std::string endpoint_b = for_b.bind("tcp://127.0.0.1:*");
  Socket client(context, SocketType::dealer,
                {.client_keys = ClientKeys{b, server_keys.public_key}});
  client.connect(endpoint_b);
  ask(client, "question");
  CHECK_EQ(receive(for_b).header, "question");
  Socket lost(context, SocketType::dealer, {.client_keys = ClientKeys{b, server_keys.public_key}});
  lost.connect(endpoint_a);
  ask(lost, "question");
  wait_for_strangers(for_a, 1);
}

TEST_CASE("Publications are encrypted, and a subscriber without keys receives none") {
  Context context;
  const KeyPair server_keys = make_key_pair();
  const KeyPair client_keys = make_key_pair();
  Publisher publisher(context, "tcp://127.0.0.1:*",
                      ServerKeys{server_keys, {client_keys.public_key}});
  Subscriber subscriber(context, publisher.endpoint(), 1000,
                        ClientKeys{client_keys, server_keys.public_key});
  Subscriber stranger(context, publisher.endpoint(), 1000);
  publisher.publish(3, std::vector<float>(1000, 1.5F));
  const auto end = Clock::now() + seconds(20);
  std::optional<Received> got;
  while (!got) {
    REQUIRE(Clock::now() < end);
    publisher.repeat();
    got = subscriber.wait(Clock::now() + milliseconds(10));
  }
  CHECK_EQ(got->values.size(), 1000);
  CHECK_EQ(got->values[999], 1.5F);
  publisher.repeat();
  CHECK_FALSE(stranger.wait(Clock::now() + milliseconds(20)));
}

TEST_CASE("Other hosts need keys, and the refusal says how to make them") {
  Context context;
  Socket plain(context, SocketType::router);
  CHECK_THROWS_WITH_AS(plain.bind("tcp://0.0.0.0:*"), doctest::Contains("troupe keys new"),
                       std::invalid_argument);
  const KeyPair keys = make_key_pair();
  Socket server(context, SocketType::router, {.server_keys = ServerKeys{keys, {}}});
  CHECK(server.bind("tcp://0.0.0.0:*").starts_with("tcp://0.0.0.0:"));
  CHECK_THROWS_WITH_AS(server.connect("tcp://127.0.0.1:9"), doctest::Contains("takes client_keys"),
                       std::invalid_argument);
  Socket client(context, SocketType::dealer, {.client_keys = ClientKeys{keys, keys.public_key}});
  CHECK_THROWS_WITH_AS(client.bind("tcp://127.0.0.1:*"), doctest::Contains("takes server_keys"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Socket(context, SocketType::dealer, {.client_keys = ClientKeys{keys, "x"}}),
                       doctest::Contains("server's public key"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      Socket(context, SocketType::router, {.server_keys = ServerKeys{{keys.public_key, "no"}, {}}}),
      doctest::Contains("own secret key"), std::invalid_argument);
}

} // namespace
} // namespace troupe::env::wire
