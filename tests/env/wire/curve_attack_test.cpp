#include <doctest/doctest.h>

#include <array>
#include <cerrno>
#include <poll.h>

#include <sys/socket.h>

#include "env/wire/deployment_keys.hpp"
#include "env/wire/socket.hpp"
#include "tests/env/wire/zmtp_peer.hpp"
#include "tests/told.hpp"

// An encrypted port and peers that violate ZeroMQ's protocol.
namespace troupe::env::wire {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// The greeting of ZeroMQ's protocol, version 3.1, with the given mechanism.
std::string greeting(const std::string& mechanism) {
  std::string bytes("\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01", 12);
  bytes += mechanism;
  bytes.resize(64, '\0');
  return bytes;
}

bool is_closed(const Descriptor& socket) {
  const auto end = Clock::now() + seconds(25); // ZeroMQ itself would wait for 30 seconds
  std::array<char, 4096> bytes{};
  while (Clock::now() < end) {
    pollfd item{socket.number(), POLLIN, 0};
    if (::poll(&item, 1, 100) <= 0)
      continue;
    const auto got = ::recv(socket.number(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
      return true;
  }
  return false;
}

/// A server that is bound to all interfaces, and an honest client that sends it a question.
struct Port {
  Told told;
  std::shared_ptr<const DeploymentKeys> keys =
      std::make_shared<DeploymentKeys>(DeploymentKeys{.own = make_key_pair(), .retired = {}});
  Context context{1, keys};
  Socket server;
  std::string endpoint;
  std::string address;

  Port()
      : server(context, SocketType::router,
               {.max_frame_bytes = 4096, .on_stranger = told.listener()}) {
    endpoint = server.bind("tcp://0.0.0.0:*");
    endpoint.replace(endpoint.find("0.0.0.0"), 7, "127.0.0.1");
    address = split_endpoint(endpoint).address;
  }

  void check_served() {
    Socket client(context, SocketType::dealer);
    client.connect(endpoint);
    Message question;
    question.header = "hello";
    REQUIRE(client.send(std::move(question), Clock::now() + seconds(5)));
    Message got;
    const auto end = Clock::now() + seconds(30);
    while (server.try_receive(got) != Socket::Received::message) {
      REQUIRE(Clock::now() < end);
      server.wait(end);
    }
    CHECK_EQ(got.header, "hello");
  }
};

TEST_CASE("An encrypted port disconnects peers that send garbage, oversized frames or broken "
          "handshakes") {
  Port port;
  const std::string hello = "\x04\x46\x05HELLO"; // a command of 70 bytes
  const std::vector<std::string> attacks{
      std::string(100'000, '\x01'),
      "GET / HTTP/1.1\r\nHost: here\r\n\r\n" + std::string(200, ' '),
      greeting("NULL") + std::string("\x04\x05READY", 7), // no encryption
      greeting("CURVE")
          + std::string("\x06\xff\xff\xff\xff\xff\xff\xff\xff", 9),       // claims 2^64 - 1 bytes
      greeting("CURVE") + std::string("\x06\0\0\0\0\x7f\xff\xff\xff", 9), // claims 2 GiB
      greeting("CURVE") + hello + std::string(64, 'x'),                   // shorter than it claims
      greeting("CURVE") + std::string("\x04\xc8\x05HELLO\x01\0", 10)
          + std::string(192, 'x'),                                  // without a valid box
      greeting("CURVE") + std::string("\x04\x0a\x08INITIATEx", 12), // out of order
      greeting("CURVE") + std::string("\0\x05hello", 7),            // before the handshake
  };
  for (std::size_t i = 0; i < attacks.size(); ++i) {
    CAPTURE(i);
    const Descriptor socket = dial(port.address);
    REQUIRE(socket);
    say_all(socket, attacks[i]);
    if (i != 5) // the server waits for the rest, then closes the connection when its time is over
      CHECK(is_closed(socket));
    port.check_served();
  }
  CHECK_LE(port.told.all().size(), 1); // reported at most once
}

TEST_CASE("An encrypted port closes silent connections in time and serves other peers meanwhile") {
  Port port;
  std::vector<Descriptor> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(dial(port.address));
    REQUIRE(silent.back());
    if (i % 2 == 1)
      say_all(silent.back(), greeting("CURVE").substr(0, static_cast<std::size_t>(i) % 64));
  }
  port.check_served();
  for (const Descriptor& socket : silent)
    CHECK(is_closed(socket));
}

} // namespace
} // namespace troupe::env::wire
