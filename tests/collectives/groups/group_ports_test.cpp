// Strangers at every port of a group of ranks: the rendezvous (LibTorch's TCPStore on our socket),
// our control mesh and our data connections. LibTorch's store does not authenticate its clients.
// The tests check that each port listens only at its given address, and that meaningless bytes do
// no harm.
#include "tests/doctest_torch.hpp"

#include <future>

#include "collectives/rendezvous/rendezvous.hpp"
#include "tests/actors/peers.hpp"
#include "tests/collectives/listening_ports.hpp"
#include "tests/collectives/ranks.hpp"
#include "tests/resident_bytes.hpp"

namespace troupe::collectives {
namespace {

using namespace testing;

constexpr unsigned kLoopback = 0x7f000001;
const CommunicatorOptions kOptions{.timeout = std::chrono::seconds(60)};

template <class Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

/// The introduction of a client of LibTorch's store: "validate", then its magic number.
std::string introduction() {
  return std::string(1, '\0') + bytes_of(std::uint32_t{0x3C85F7CE});
}

/// What strangers send first. Some of these are valid up to the length of what follows.
std::vector<std::string> strange_words() {
  const std::string set(1, '\1');
  return {std::string(4096, '\x5a'),
          "GET / HTTP/1.1\r\nHost: rank0\r\n\r\n",
          std::string(64, '\0'),
          std::string(64, '\xff'),
          introduction().substr(0, 3),
          introduction() + set,
          introduction() + set + bytes_of(std::uint64_t{1} << 40),
          introduction() + set + bytes_of(~std::uint64_t{0}),
          introduction() + set + bytes_of(std::uint64_t{3}) + "key"
              + bytes_of(std::uint64_t{1} << 62),
          introduction() + std::string(1, '\x7f'),
          introduction() + std::string(1, '\2') + bytes_of(std::uint64_t{5}) + "ab",
          bytes_of(std::uint64_t{1} << 60),
          ""};
}

/// Returns connections that sent these bytes and then nothing more. A port may close its end.
std::vector<Socket> bother(int port) {
  std::vector<Socket> open;
  for (const auto& words : strange_words())
    for (int i = 0; i < 8; ++i) {
      open.push_back(connected_to(port));
      say(open.back(), words);
    }
  return open;
}

void sum_ten_times(Communicator& communicator) {
  for (int i = 0; i < 10; ++i) {
    auto tensor = at::ones({1000 + i}, at::kFloat);
    communicator.all_reduce(tensor, ReduceOp::sum);
    CHECK(tensor.sum().item<float>() == static_cast<float>(2 * (1000 + i)));
  }
}

} // namespace

TEST_CASE("A rendezvous survives malformed clients of every kind, and the group still forms") {
  const RendezvousServer server("127.0.0.1");
  const auto memory = resident_bytes();
  const auto strangers = bother(server.port());
  const auto rank = [&](int number) {
    const auto store = connect_rendezvous("127.0.0.1", server.port(), kOptions);
    ControlMesh(*store, number, 2, kOptions).agree({});
  };
  auto other = std::async(std::launch::async, [&] { rank(1); });
  CHECK_NOTHROW(rank(0));
  CHECK_NOTHROW(other.get());
  CHECK(resident_bytes() < memory + (std::size_t{64} << 20)); // no announced length was trusted
}

TEST_CASE("Unauthenticated connections to every port of a group do not change its sums"
          * doctest::skip(kStoreSkipped)) {
  const auto before = listening_ports();
  std::atomic<int> ready = 0;
  std::atomic<bool> bothered = false;
  std::map<int, unsigned> ports;
  std::vector<Socket> strangers;
  const auto errors = on_ranks(
      Means::tcp, 2,
      [&](Communicator& communicator) {
        sum_ten_times(communicator);
        ++ready;
        if (communicator.rank() == 0) {
          REQUIRE(comes_true([&] { return ready == 2; }));
          ports = listening_ports();
          for (const auto& [port, address] : before)
            ports.erase(port);
          for (const auto& [port, address] : ports)
            for (auto& stranger : bother(port))
              strangers.push_back(std::move(stranger));
          bothered = true;
        }
        REQUIRE(comes_true([&] { return bothered.load(); }));
        sum_ten_times(communicator);
      },
      kOptions);
  for (const auto& error : errors)
    CHECK(error == "");
  CHECK(ports.size() == 1); // the rendezvous': after it, no rank listens
  for (const auto& [port, address] : ports) {
    CAPTURE(port);
    CHECK(address == kLoopback);
  }
}

} // namespace troupe::collectives
