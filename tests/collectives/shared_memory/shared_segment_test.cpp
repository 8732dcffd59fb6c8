#include "tests/doctest_torch.hpp"

#include <cstddef>
#include <cstring>
#include <future>
#include <random>

#include <sys/socket.h>
#include <sys/un.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "collectives/shared_memory/shared_memory_backend.hpp"
#include "tests/text.hpp"

namespace troupe::collectives {
namespace {

using namespace std::chrono_literals;

std::future<std::shared_ptr<SharedSegment>> join(c10d::Store& store, int rank, int size) {
  return std::async(std::launch::async,
                    [&store, rank, size] { return SharedSegment::join(store, rank, size, 20s); });
}

Socket stranger(c10d::Store& store) {
  const auto name = store.get("troupe/shared_memory");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  Socket socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  REQUIRE(connect(socket.fd(), reinterpret_cast<sockaddr*>(&address),
                  static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()))
          == 0);
  return socket;
}

} // namespace

TEST_CASE("An unknown client of the local socket is rejected, and the segment is still shared") {
  c10d::HashStore store;
  auto first = join(store, 0, 2);
  const auto socket = stranger(store);
  REQUIRE(send(socket.fd(), "who is there", 12, 0) == 12);
  auto second = join(store, 1, 2);
  const auto one = first.get(), other = second.get();
  one->stage(1, 1)[17] = std::byte{42};
  CHECK(bool(other->stage(1, 1)[17] == std::byte{42}));
  CHECK(one->dead() == -1);
}

TEST_CASE("A process started for another number of ranks is named and gets no memory") {
  c10d::HashStore store;
  auto first = join(store, 0, 2);
  auto other = join(store, 1, 3);
  const auto error = error_of([&] { first.get(); }), told = error_of([&] { other.get(); });
  CAPTURE(error);
  CAPTURE(told);
  CHECK(error.find("rank 1 of 3 to rank 0 of 2") != std::string::npos);
  CHECK(told.find("rank 0 gave rank 1 no memory") != std::string::npos);
}

TEST_CASE("Ranks that never join the shared memory are named") {
  c10d::HashStore store;
  const auto error = error_of([&] { SharedSegment::join(store, 0, 3, 50ms); });
  CHECK(error.find("rank 1, rank 2 did not join") != std::string::npos);
  CHECK_THROWS_AS(SharedSegment::join(store, 0, 65, 50ms), std::invalid_argument);
}

TEST_CASE("A segment shows that another rank is gone") {
  c10d::HashStore store;
  auto first = join(store, 0, 2);
  auto second = SharedSegment::join(store, 1, 2, 20s);
  const auto left = first.get();
  CHECK(left->dead() == -1);
  second.reset();
  CHECK(left->dead() == 1);
}

TEST_CASE("Stray writes to shared memory cause only errors or wrong numbers") {
  int failed = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const auto segment = SharedSegment::of_threads(2);
    SharedMemoryBackend backend(0, segment, 10ms);
    auto* bytes = reinterpret_cast<std::byte*>(&segment->header());
    const std::size_t reach = seed % 2 ? sizeof(SharedHeader) : offsetof(SharedHeader, rank) + 8192;
    for (int write = 0; write < (seed % 3 == 0 ? 1000 : 20); ++write)
      bytes[64 + random() % (reach - 64)] = static_cast<std::byte>(random());
    for (int call = 0; call < 4; ++call) {
      std::vector<at::Tensor> tensors{torch::ones({call % 2 ? 100'000 : 10})};
      auto input = torch::ones({6, 30'000}), output = torch::zeros({6, 30'000});
      std::vector<std::int64_t> in{2, 4}, out{2, 4};
      try {
        if (call < 2)
          backend.allreduce(tensors, {});
        else
          backend.alltoall_base(output, input, out, in, {});
      } catch (const CollectiveError&) {
        ++failed;
      }
    }
  }
  CHECK(failed > 0);
}

} // namespace troupe::collectives
