#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <future>
#include <numeric>

#include <sys/socket.h>

#include "collectives/mesh/group_key.hpp"
#include "collectives/mesh/secure_socket.hpp"

namespace troupe::collectives {
namespace {

using namespace std::chrono_literals;
using Handshake = SecureSocket::Handshake;
using Role = SecureSocket::Role;

Deadline in_time() {
  return std::chrono::steady_clock::now() + 20s;
}

std::pair<Socket, Socket> socket_pair() {
  int ends[2] = {-1, -1};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  return {Socket(ends[0]), Socket(ends[1])};
}

GroupKey key_of(int number) {
  GroupKey key;
  key.fill(static_cast<std::byte>(number));
  return key;
}

std::vector<std::byte> bytes_like_data(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(i * i >> 3);
  return bytes;
}

void shake_hands(SecureSocket& client, SecureSocket& server) {
  client.handshake();
  server.handshake();
  REQUIRE(client.handshake() == Handshake::done);
  REQUIRE(server.handshake() == Handshake::done);
}

/// Moves what has arrived at one end to the other, and returns it.
std::vector<std::byte> carry(const Socket& from, const Socket& to, std::size_t flip = SIZE_MAX) {
  std::vector<std::byte> bytes(1 << 16);
  const auto got = recv(from.fd(), bytes.data(), bytes.size(), 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (flip < bytes.size())
    bytes[flip] ^= std::byte{1};
  REQUIRE(send_all(to, bytes, in_time()));
  return bytes;
}

} // namespace

TEST_CASE("Both ends of a secure connection exchange data across key changes") {
  for (const std::uint64_t bytes_of_keys : {SecureSocket::kBytesOfKeys, std::uint64_t{50'000}}) {
    auto [one, two] = socket_pair();
    const auto sent = bytes_like_data(1'000'003);
    const auto exchange = [&](Socket socket, Role role) {
      SecureSocket secure(std::move(socket), role, key_of(1), 4096, bytes_of_keys);
      bool fine = finish_handshake(secure, in_time()) == Handshake::done;
      for (int round = 0; round < 2; ++round) { // each direction in its turn
        std::vector<std::byte> got(sent.size());
        const bool sends = (round == 0) == (role == Role::client);
        fine = fine
               && (sends ? send_all(secure, sent, in_time()) : receive_all(secure, got, in_time()));
        fine = fine && (sends || got == sent);
      }
      return fine;
    };
    auto other = std::async(std::launch::async, exchange, std::move(one), Role::client);
    CHECK(exchange(std::move(two), Role::server));
    CHECK(other.get());
  }
}

TEST_CASE("Ends with different keys refuse each other") {
  auto [one, two] = socket_pair();
  SecureSocket client(std::move(one), Role::client, key_of(1));
  SecureSocket server(std::move(two), Role::server, key_of(2));
  CHECK(client.handshake() == Handshake::waiting);
  CHECK(server.handshake() == Handshake::refused);
  CHECK(client.handshake() == Handshake::refused);
}

TEST_CASE("A byte changed in transit ends the connection, and its record is not delivered") {
  auto [one, left] = socket_pair();
  auto [right, two] = socket_pair();
  SecureSocket client(std::move(one), Role::client, key_of(1));
  SecureSocket server(std::move(two), Role::server, key_of(1));
  CHECK(client.handshake() == Handshake::waiting);
  carry(left, right);
  CHECK(server.handshake() == Handshake::waiting);
  carry(right, left);
  CHECK(client.handshake() == Handshake::done);
  carry(left, right);
  CHECK(server.handshake() == Handshake::done);
  const auto data = bytes_like_data(1000);
  std::vector<std::byte> got(data.size());
  REQUIRE(send_all(client, data, in_time()));
  const auto seen = carry(left, right);
  REQUIRE(receive_all(server, got, in_time()));
  CHECK(std::equal(got.begin(), got.end(), data.begin()));
  CHECK((std::search(seen.begin(), seen.end(), data.begin() + 100, data.begin() + 116)
         == seen.end())); // it was encrypted
  REQUIRE(send_all(client, data, in_time()));
  carry(left, right, 500);
  CHECK_FALSE(server.receive(got).has_value());
}

TEST_CASE("A full connection accepts no more data until its peer reads, and loses none") {
  auto [one, two] = socket_pair();
  SecureSocket client(std::move(one), Role::client, key_of(1));
  SecureSocket server(std::move(two), Role::server, key_of(1));
  shake_hands(client, server);
  const auto data = bytes_like_data(8 << 20);
  std::span<const std::byte> left(data);
  for (std::size_t taken = 1; taken > 0; left = left.subspan(taken))
    taken = client.send(left).value();
  CHECK(left.size() > 0);
  std::vector<std::byte> got(data.size());
  std::span<std::byte> room(got);
  while (!room.empty()) {
    left = left.subspan(client.send(left).value());
    room = room.subspan(server.receive(room).value());
  }
  CHECK(std::equal(got.begin(), got.end(), data.begin()));
}

TEST_CASE("A closed peer is detected by writes and by reads") {
  auto [one, two] = socket_pair();
  SecureSocket client(std::move(one), Role::client, key_of(1));
  {
    SecureSocket server(std::move(two), Role::server, key_of(1));
    shake_hands(client, server);
  }
  const auto data = bytes_like_data(1000);
  client.send(data);
  CHECK_FALSE(client.send(data).has_value()); // and SIGPIPE has not killed this process
  std::vector<std::byte> got(10);
  CHECK_FALSE(client.receive(got).has_value());
}

TEST_CASE("A group's key is derived by HKDF from the random bytes and the secret") {
  std::vector<std::byte> random(32);
  for (std::size_t i = 0; i < random.size(); ++i)
    random[i] = static_cast<std::byte>(i);
  const auto key = derive_group_key(random, "a deployment's secret");
  // From Python's hmac and hashlib: T(1) of RFC 5869 without salt.
  constexpr unsigned char kExpected[] = {0xdf, 0x38, 0xfe, 0xce, 0x85, 0xea, 0x1f, 0xce,
                                         0x6c, 0xd4, 0xbe, 0xbc, 0xc2, 0x8a, 0xc4, 0x71,
                                         0xdf, 0x88, 0xd8, 0xdc, 0x48, 0xb5, 0x5a, 0x05,
                                         0x75, 0xef, 0xd7, 0x4b, 0xf3, 0x8a, 0x62, 0x9b};
  CHECK(std::equal(key.begin(), key.end(), reinterpret_cast<const std::byte*>(kExpected)));
  CHECK((derive_group_key(random, "another") != key));
  random[31] = std::byte{0};
  CHECK((derive_group_key(random, "a deployment's secret") != key));
}

TEST_CASE(
    "A group that other hosts can reach needs a secret, a private store or a trusted network") {
  const std::string open = "0.0.0.0";
  CHECK_NOTHROW(require_trust({}, "127.0.0.1"));
  CHECK_NOTHROW(require_trust({}, "::1"));
  CHECK_THROWS_WITH_AS(require_trust({}, open), doctest::Contains("troupe keys cluster"),
                       std::invalid_argument);
  CHECK_NOTHROW(require_trust({.secret = "x"}, open));
  CHECK_NOTHROW(require_trust({.private_store = true}, open));
  CHECK_NOTHROW(require_trust({.trusted_network = true}, open));
  CHECK_NOTHROW(require_trusted_network({}, "127.0.0.1", "NCCL"));
  CHECK_THROWS_WITH_AS(require_trusted_network({.secret = "x"}, open, "NCCL"),
                       doctest::Contains("TROUPE_TRUSTED_NETWORK=1"), std::invalid_argument);
  CHECK_NOTHROW(require_trusted_network({.trusted_network = true}, open, "NCCL"));
}

} // namespace troupe::collectives
