#include "tests/doctest_torch.hpp"

#include <cstring>
#include <future>

#include <unistd.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "collectives/mesh/control_mesh.hpp"
#include "collectives/mesh/group_key.hpp"
#include "tests/text.hpp"

namespace troupe::collectives {
namespace {

using namespace std::chrono_literals;

const CommunicatorOptions kOptions{.timeout = 20s, .connect_timeout = 20s};

Deadline soon() {
  return std::chrono::steady_clock::now() + 20s;
}

/// A connection to the listener of rank 0.
Socket connect_to_rank_0(c10d::Store& store) {
  const auto raw = store.get("troupe/control/0");
  const std::string address(raw.begin(), raw.end());
  return connect_to("127.0.0.1", std::atoi(address.c_str() + address.find(' ')), soon());
}

/// Connects to rank 0 like a process that has read the store, and sends this greeting.
SecureSocket greet_rank_0(c10d::Store& store, std::int32_t from, std::int32_t size,
                          std::int32_t to = 0) {
  const auto socket = connect_to_rank_0(store);
  const auto random = store.get("troupe/random");
  SecureSocket secure(Socket(dup(socket.fd())), SecureSocket::Role::client,
                      derive_group_key(std::as_bytes(std::span(random)), ""));
  REQUIRE(finish_handshake(secure, soon()) == SecureSocket::Handshake::done);
  const std::int32_t greeting[] = {from, to, size, 0};
  REQUIRE(send_all(secure, std::as_bytes(std::span(greeting)), soon()));
  return secure;
}

std::future<std::string> rank_0(c10d::Store& store) {
  return std::async(std::launch::async, [&store] {
    return error_of([&] { ControlMesh(store, 0, 2, kOptions).agree({}); });
  });
}

} // namespace

TEST_CASE("An unauthenticated connection is rejected, and the group still forms") {
  c10d::HashStore store;
  auto first = rank_0(store);
  const auto stranger = connect_to_rank_0(store);
  const std::vector<std::byte> noise(64, std::byte{0x5a});
  REQUIRE(send_all(stranger, noise, soon()));
  ControlMesh(store, 1, 2, kOptions).agree({});
  CHECK(first.get() == "");
}

TEST_CASE(
    "Connections with another key or half a handshake are rejected, and the group still forms") {
  c10d::HashStore store;
  auto first = rank_0(store);
  SecureSocket stranger(connect_to_rank_0(store), SecureSocket::Role::client, GroupKey{});
  CHECK(finish_handshake(stranger, soon()) == SecureSocket::Handshake::refused);
  const auto half = connect_to_rank_0(store);
  constexpr unsigned char kHello[] = {22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}; // an incomplete hello
  REQUIRE(send_all(half, std::as_bytes(std::span(kHello)), soon()));
  ControlMesh(store, 1, 2, kOptions).agree({});
  CHECK(first.get() == "");
}

TEST_CASE("A connection meant for another rank is not accepted") {
  c10d::HashStore store;
  auto first = rank_0(store);
  const auto misled = greet_rank_0(store, 1, 2, 1); // meant for rank 1
  ControlMesh(store, 1, 2, kOptions).agree({});
  CHECK(first.get() == "");
}

TEST_CASE("Payloads that ranks attach to a call reach all other ranks") {
  c10d::HashStore store;
  const auto text_of = [&](int rank) {
    ControlMesh mesh(store, rank, 3, kOptions);
    std::string text;
    for (int call = 0; call < 2; ++call) {
      const std::string mine(kMostPayload, static_cast<char>('a' + 3 * call + rank));
      std::vector<std::vector<std::byte>> payloads;
      mesh.agree({}, std::as_bytes(std::span(mine)), &payloads);
      for (const auto& payload : payloads)
        text += payload.empty() ? '-'
                : payload.size() == mine.size() && payload.front() == payload.back()
                    ? static_cast<char>(payload.front())
                    : '?';
    }
    return text;
  };
  std::vector<std::future<std::string>> texts;
  for (int rank = 0; rank < 3; ++rank)
    texts.push_back(std::async(std::launch::async, text_of, rank));
  CHECK(texts[0].get() == "-bc-ef");
  CHECK(texts[1].get() == "a-cd-f");
  CHECK(texts[2].get() == "ab-de-");
}

TEST_CASE("Silent connections and incomplete greetings do not delay the group") {
  c10d::HashStore store;
  auto first = rank_0(store);
  std::vector<Socket> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(connect_to_rank_0(store));
    if (i % 2 == 0)
      REQUIRE(send_all(silent.back(), std::vector<std::byte>(7), soon()));
  }
  ControlMesh(store, 1, 2, kOptions).agree({});
  CHECK(first.get() == "");
}

TEST_CASE("A rank that joins after the others gave up fails before it sends data") {
  c10d::HashStore store;
  auto options = kOptions;
  options.timeout = 50ms;
  auto made = std::async(std::launch::async,
                         [&] { return std::make_unique<ControlMesh>(store, 0, 2, options); });
  ControlMesh late(store, 1, 2, kOptions);
  const auto mesh = made.get();
  const auto first = error_of<CollectiveError>([&] { mesh->agree({}); });
  CHECK(first.find("rank 1 did not arrive within") != std::string::npos);
  CHECK(error_of<CollectiveError>([&] { late.agree({}); }) == first);
}

TEST_CASE("A rank that leaves after another's abort is not reported as dead") {
  c10d::HashStore store;
  std::vector<std::unique_ptr<ControlMesh>> mesh(3);
  std::vector<std::future<void>> made;
  for (int rank = 0; rank < 3; ++rank)
    made.push_back(std::async(std::launch::async, [&, rank] {
      mesh[static_cast<std::size_t>(rank)] =
          std::make_unique<ControlMesh>(store, rank, 3, kOptions);
    }));
  for (auto& each : made)
    each.get();
  mesh[2]->abort("the disk is full");
  CHECK_THROWS_WITH(
      [&] {
        while (!mesh[0]->someone_left()) {
        }
      }(),
      "the disk is full");
  mesh[0].reset(); // left before rank 1's first call, without a fingerprint
  CHECK_THROWS_WITH(mesh[1]->agree({}), "the disk is full");
}

TEST_CASE("A process started for another group size is named") {
  c10d::HashStore store;
  auto first = rank_0(store);
  const auto other = greet_rank_0(store, 1, 3);
  const auto error = first.get();
  CAPTURE(error);
  CHECK(error.find("rank 1 of 3 to rank 0 of 2") != std::string::npos);
}

TEST_CASE("Bytes that are not a frame fail the group, and the error names the sender") {
  for (const std::uint32_t length : {std::uint32_t{0}, std::uint32_t{80}, ~std::uint32_t{0}}) {
    c10d::HashStore store;
    auto first = rank_0(store);
    auto peer = greet_rank_0(store, 1, 2);
    const std::uint32_t frame[] = {0x12345678, length};
    REQUIRE(send_all(peer, std::as_bytes(std::span(frame)), soon()));
    CHECK(first.get() == "rank 1 sent bytes that are not a frame of this version");
  }
}

TEST_CASE("A fingerprint with values out of range is described as unknown") {
  c10d::HashStore store;
  auto first = rank_0(store);
  auto peer = greet_rank_0(store, 1, 2);
  std::vector<std::byte> frame(8 + sizeof(Fingerprint), std::byte{0xee});
  const std::uint32_t header[] = {0x54460001, sizeof(Fingerprint)};
  std::memcpy(frame.data(), header, sizeof header);
  REQUIRE(send_all(peer, frame, soon()));
  const auto error = first.get();
  CAPTURE(error);
  CHECK(error.find("rank 0 barrier, rank 1 an unknown collective") != std::string::npos);
}

} // namespace troupe::collectives
