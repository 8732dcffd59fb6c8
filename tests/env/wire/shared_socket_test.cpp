#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "env/wire/socket.hpp"
#include "tests/env/wire/named_mappings.hpp"
#include "tests/env/wire/receive.hpp"

namespace troupe::env::wire {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

const SocketOptions kWholeHeap{.max_frame_bytes = std::size_t{128} << 20,
                               .shared_memory = SharedMemory{}};

constexpr std::size_t kPiece = 4096; // bytes; checking single bytes is slow under sanitizers

/// Content of a piece of a frame, which depends on its place and on the frame's seed.
std::array<std::byte, kPiece> piece(std::size_t seed, std::size_t at) {
  std::array<std::byte, kPiece> bytes;
  std::memset(bytes.data(), static_cast<int>(seed * 31 + at), kPiece);
  std::memcpy(bytes.data(), &seed, sizeof seed);
  std::memcpy(bytes.data() + sizeof seed, &at, sizeof at);
  return bytes;
}

void fill(std::span<std::byte> bytes, std::size_t seed) {
  for (std::size_t at = 0; at < bytes.size(); at += kPiece)
    std::memcpy(bytes.data() + at, piece(seed, at).data(), std::min(kPiece, bytes.size() - at));
}

bool is_filled(const Frame& frame, std::size_t size, std::size_t seed) {
  if (frame.size() != size)
    return false;
  const auto bytes = frame.bytes();
  for (std::size_t at = 0; at < size; at += kPiece)
    if (std::memcmp(bytes.data() + at, piece(seed, at).data(), std::min(kPiece, size - at)) != 0)
      return false;
  return true;
}

Frame filled(std::size_t size, std::size_t seed) {
  Frame frame(size);
  fill(frame.bytes(), seed);
  return frame;
}

void send_header(Socket& socket, const std::string& header, const std::string& peer = {}) {
  Message message;
  message.peer = peer;
  message.header = header;
  REQUIRE(socket.send(std::move(message), Clock::now() + seconds(5)));
}

/// Polls both sides until they share memory. Returns the dealer's address at the router.
std::string link(Socket& router, Socket& dealer) {
  send_header(dealer, "who am I?");
  const std::string peer = receive(router).peer;
  const auto linked = router.shared_counters().links;
  const auto end = Clock::now() + seconds(20);
  while (router.shared_counters().links == linked || dealer.shared_counters().links == 0) {
    REQUIRE(Clock::now() < end);
    dealer.wait(Clock::now() + milliseconds(1));
    router.wait(Clock::now() + milliseconds(1));
  }
  return peer;
}

TEST_CASE("Frames of every size arrive complete in both directions") {
  for (const char* transport : {"tcp://127.0.0.1:*", "ipc://*"}) {
    CAPTURE(transport);
    Context context;
    Socket router(context, SocketType::router, kWholeHeap);
    Socket dealer(context, SocketType::dealer, kWholeHeap);
    dealer.connect(router.bind(transport));
    const std::string peer = link(router, dealer);
    std::int64_t large = 0;
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{1023}, std::size_t{1024},
          std::size_t{1025}, std::size_t{100000}, std::size_t{1} << 20, (std::size_t{8} << 20) + 7,
          std::size_t{64} << 20}) {
      CAPTURE(size);
      large += size >= kWholeHeap.shared_memory->least_frame_bytes ? 1 : 0;
      Message there;
      there.frames.push_back(filled(size, size + 1));
      REQUIRE(dealer.send(std::move(there), Clock::now() + seconds(5)));
      CHECK(is_filled(receive(router).frames.at(0), size, size + 1));
      Message back;
      back.peer = peer;
      back.frames.push_back(router.frame(size, peer));
      fill(back.frames[0].bytes(), size + 2);
      REQUIRE(router.send(std::move(back), Clock::now() + seconds(5)));
      CHECK(is_filled(receive(dealer).frames.at(0), size, size + 2));
    }
    CHECK_EQ(router.shared_counters().frames_sent, large);
    CHECK_EQ(router.shared_counters().frames_received, large);
    CHECK_EQ(dealer.shared_counters().frames_received, large);
    CHECK_EQ(router.shared_counters().full, 0);
  }
}

TEST_CASE("Frames keep their order, whether they travel in shared memory or in messages") {
  SocketOptions options = kWholeHeap;
  options.shared_memory->bytes_per_peer = std::size_t{1} << 20; // fills up now and then
  Context context;
  Socket router(context, SocketType::router, options);
  Socket dealer(context, SocketType::dealer, options);
  dealer.connect(router.bind("tcp://127.0.0.1:*"));
  link(router, dealer);
  std::mt19937 random(5);
  std::size_t seed = 0;
  std::size_t expected = 0;
  std::size_t number = 0;
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<std::vector<std::size_t>> sizes(1 + random() % 8);
    for (auto& of_message : sizes) {
      Message message;
      message.header = std::to_string(number++);
      for (auto count = random() % 100; count > 0; --count) {
        of_message.push_back(random() % 4 == 0 ? 16384 + random() % 30000 : random() % 300);
        message.frames.push_back(filled(of_message.back(), ++seed));
      }
      REQUIRE(dealer.send(std::move(message), Clock::now() + seconds(5)));
    }
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const Message got = receive(router);
      REQUIRE_EQ(got.header, std::to_string(number - sizes.size() + k));
      REQUIRE_EQ(got.frames.size(), sizes[k].size());
      for (std::size_t i = 0; i < sizes[k].size(); ++i)
        REQUIRE(is_filled(got.frames[i], sizes[k][i], ++expected));
    }
  }
  CHECK_GT(dealer.shared_counters().frames_sent, 1000);
  CHECK_GT(dealer.shared_counters().full, 10);
  CHECK_EQ(router.shared_counters().lost, 0);
}

TEST_CASE("Each of many peers gets its own frames") {
  constexpr std::size_t kPeers = 24;
  Context context;
  Socket router(context, SocketType::router, kWholeHeap);
  const std::string endpoint = router.bind("tcp://127.0.0.1:*");
  std::vector<std::unique_ptr<Socket>> dealers;
  std::vector<std::string> peers;
  for (std::size_t i = 0; i < kPeers; ++i) {
    dealers.push_back(std::make_unique<Socket>(context, SocketType::dealer, kWholeHeap));
    dealers.back()->connect(endpoint);
    peers.push_back(link(router, *dealers.back()));
  }
  CHECK_EQ(std::set<std::string>(peers.begin(), peers.end()).size(), kPeers);
  for (std::size_t turn = 0; turn < 4; ++turn) {
    for (std::size_t i = 0; i < kPeers; ++i) {
      Message message;
      message.peer = peers[i];
      message.frames.push_back(filled(40000 + i, turn * 100 + i));
      REQUIRE(router.send(std::move(message), Clock::now() + seconds(5)));
    }
    for (std::size_t i = 0; i < kPeers; ++i)
      CHECK(is_filled(receive(*dealers[i]).frames.at(0), 40000 + i, turn * 100 + i));
  }
  CHECK_EQ(router.shared_counters().frames_sent, 4 * kPeers);
}

TEST_CASE("Peers that do not share memory get frames in messages") {
  Context context;
  Socket sharing_router(context, SocketType::router, kWholeHeap);
  Socket plain_dealer(context, SocketType::dealer, {});
  plain_dealer.connect(sharing_router.bind("tcp://127.0.0.1:*"));
  Socket plain_router(context, SocketType::router, {});
  Socket sharing_dealer(context, SocketType::dealer, kWholeHeap);
  sharing_dealer.connect(plain_router.bind("tcp://127.0.0.1:*"));
  Socket within_router(context, SocketType::router, kWholeHeap);
  Socket within_dealer(context, SocketType::dealer, kWholeHeap);
  within_router.bind("inproc://within");
  within_dealer.connect("inproc://within");
  for (auto [dealer, router] : {std::pair{&plain_dealer, &sharing_router},
                                {&sharing_dealer, &plain_router},
                                {&within_dealer, &within_router}})
    for (std::size_t i = 0; i < 5; ++i) {
      Message message;
      message.header = "h";
      message.frames.push_back(filled(100000, i));
      REQUIRE(dealer->send(std::move(message), Clock::now() + seconds(5)));
      Message got = receive(*router);
      CHECK(is_filled(got.frames.at(0), 100000, i));
      got.frames[0] = router->frame(50000, got.peer);
      fill(got.frames[0].bytes(), i);
      REQUIRE(router->send(std::move(got), Clock::now() + seconds(5)));
      CHECK(is_filled(receive(*dealer).frames.at(0), 50000, i));
      CHECK_EQ(router->shared_counters().frames_sent, 0);
      CHECK_EQ(dealer->shared_counters().frames_sent, 0);
    }
}

TEST_CASE("A received frame can be forwarded to another peer and back") {
  Context context;
  Socket router(context, SocketType::router, kWholeHeap);
  const std::string endpoint = router.bind("tcp://127.0.0.1:*");
  Socket first(context, SocketType::dealer, kWholeHeap);
  Socket second(context, SocketType::dealer, kWholeHeap);
  first.connect(endpoint);
  second.connect(endpoint);
  const std::string origin = link(router, first);
  const std::string other = link(router, second);
  Message message;
  message.frames.push_back(filled(70000, 3));
  REQUIRE(first.send(std::move(message), Clock::now() + seconds(5)));
  Message got = receive(router);
  got.peer = other;
  got.frames.push_back(router.frame(30000, "nobody we know"));
  fill(got.frames.back().bytes(), 4);
  REQUIRE(router.send(std::move(got), Clock::now() + seconds(5)));
  Message there = receive(second);
  CHECK(is_filled(there.frames.at(0), 70000, 3));
  CHECK(is_filled(there.frames.at(1), 30000, 4));
  REQUIRE(second.send(std::move(there), Clock::now() + seconds(5)));
  Message returned = receive(router);
  returned.peer = origin;
  REQUIRE(router.send(std::move(returned), Clock::now() + seconds(5)));
  const Message back = receive(first);
  CHECK(is_filled(back.frames.at(0), 70000, 3));
  CHECK(is_filled(back.frames.at(1), 30000, 4));
  CHECK_EQ(first.shared_counters().frames_received, 2);
}

TEST_CASE("A header that looks like a control part arrives unchanged") {
  Context context;
  Socket router(context, SocketType::router, kWholeHeap);
  Socket dealer(context, SocketType::dealer, kWholeHeap);
  dealer.connect(router.bind("tcp://127.0.0.1:*"));
  const std::string peer = link(router, dealer);
  const std::string header = std::string("\0Troupe\x01", 8) + "and more";
  for (const std::size_t size : {10U, 50000U}) {
    Message message;
    message.header = header;
    message.frames.push_back(filled(size, 1));
    REQUIRE(dealer.send(std::move(message), Clock::now() + seconds(5)));
    const Message got = receive(router);
    CHECK_EQ(got.header, header);
    CHECK(is_filled(got.frames.at(0), size, 1));
  }
}

TEST_CASE("Limits also apply to frames in shared memory") {
  Context context;
  SocketOptions options = kWholeHeap;
  options.max_frame_bytes = 30000;
  options.max_frames = 3;
  Socket router(context, SocketType::router, options);
  Socket dealer(context, SocketType::dealer, kWholeHeap);
  dealer.connect(router.bind("tcp://127.0.0.1:*"));
  link(router, dealer);
  const auto send = [&](std::initializer_list<std::size_t> sizes) {
    Message message;
    for (const std::size_t size : sizes)
      message.frames.push_back(filled(size, 1));
    REQUIRE(dealer.send(std::move(message), Clock::now() + seconds(5)));
    Message got;
    REQUIRE(router.wait(Clock::now() + seconds(20)));
    return router.try_receive(got);
  };
  CHECK(send({30000, 10, 30000}) == Socket::Received::message);
  CHECK(send({30001}) == Socket::Received::oversized);
  CHECK(send({20000, 1, 1, 1}) == Socket::Received::oversized);
  CHECK(send({20000}) == Socket::Received::message);
}

std::size_t entries(const char* folder) {
  const auto all = std::filesystem::directory_iterator(folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_CASE("Shared memory creates no named mapping and leaves no descriptor open") {
  const std::size_t descriptors = entries("/proc/self/fd");
  {
    Context context;
    Socket router(context, SocketType::router, kWholeHeap);
    Socket dealer(context, SocketType::dealer, kWholeHeap);
    dealer.connect(router.bind("tcp://127.0.0.1:*"));
    link(router, dealer);
    Message message;
    message.frames.push_back(filled(100000, 3));
    REQUIRE(dealer.send(std::move(message), Clock::now() + seconds(5)));
    CHECK_EQ(receive(router).frames.size(), 1);
    CHECK_EQ(router.shared_counters().frames_received, 1);
    CHECK_EQ(named_mappings(), 0);
  }
  CHECK_EQ(entries("/proc/self/fd"), descriptors);
}

TEST_CASE("Frames may be freed on a thread other than the socket's") {
  Context context;
  Socket router(context, SocketType::router, kWholeHeap);
  Socket dealer(context, SocketType::dealer, kWholeHeap);
  dealer.connect(router.bind("tcp://127.0.0.1:*"));
  link(router, dealer);
  for (int turn = 0; turn < 50; ++turn) {
    Message message;
    for (std::size_t i = 0; i < 8; ++i)
      message.frames.push_back(filled(20000, i));
    REQUIRE(dealer.send(std::move(message), Clock::now() + seconds(5)));
    Message got = receive(router);
    std::vector<Frame> unsent;
    for (std::size_t i = 0; i < 4; ++i)
      unsent.push_back(dealer.frame(20000));
    const std::jthread other([frames = std::move(got.frames), ours = std::move(unsent)]() mutable {
      frames.clear();
      ours.clear();
    });
    Frame meanwhile = dealer.frame(40000);
    fill(meanwhile.bytes(), 1);
  }
  CHECK_EQ(dealer.shared_counters().full, 0);
}

} // namespace
} // namespace troupe::env::wire
