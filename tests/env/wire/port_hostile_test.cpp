#include <algorithm>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env/wire/plain_port.hpp"
#include "env/wire/socket.hpp"
#include "tests/env/wire/receive.hpp"
#include "tests/env/wire/zmtp_peer.hpp"
#include "tests/eventually.hpp"
#include "tests/resident_bytes.hpp"
#include "tests/temporary_folder.hpp"
#include <doctest/doctest.h>

// A port without keys, and strangers who try to make it hold unlimited memory or descriptors.
namespace troupe::env::wire {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr std::size_t kMiB = std::size_t{1} << 20;

void check_served(Context& context, Socket& server, const std::string& endpoint) {
  Socket client(context, SocketType::dealer);
  client.connect(endpoint);
  Message question;
  question.header = "question";
  REQUIRE(client.send(std::move(question), Clock::now() + seconds(20)));
  Message got = receive(server);
  CHECK_EQ(got.header, "question");
  got.header = "answer";
  REQUIRE(server.send(std::move(got), Clock::now() + seconds(20)));
  CHECK_EQ(receive(client).header, "answer");
}

TEST_CASE(
    "A message that never ends takes little memory and delays no other client, over tcp and ipc") {
  const TemporaryFolder folder;
  for (const std::string& at :
       {std::string("tcp://127.0.0.1:*"), "ipc://" + (folder / "s").string()}) {
    Context context;
    Socket server(context, SocketType::router, {.max_message_bytes = 16 * kMiB});
    const std::string endpoint = server.bind(at);
    const Descriptor stranger = dial(endpoint);
    REQUIRE(stranger);
    REQUIRE(say_all(stranger, dealer_hello()));
    const std::string block = part_of(std::string(kMiB, 'x'), true);
    const std::size_t before = resident_bytes();
    std::size_t most = 0;
    for (int i = 0; i < 512; ++i) {
      REQUIRE(say_all(stranger, block));
      most = std::max(most, resident_bytes());
      if (i % 128 == 64)
        check_served(context, server, endpoint);
    }
    CHECK_LT(most, before + 128 * kMiB);
    REQUIRE(say_all(stranger, part_of("the end", false)));
    Message message;
    REQUIRE(server.wait(Clock::now() + seconds(20)));
    CHECK(server.try_receive(message) == Socket::Received::oversized);
    CHECK_FALSE(message.peer.empty()); // for the log message
  }
}

TEST_CASE("A port whose owner takes no messages holds no more than the limit") {
  PlainPort port({.limits = {.max_message_bytes = 4 * kMiB}, .max_waiting_bytes = 32 * kMiB});
  const std::string endpoint = port.bind("tcp://127.0.0.1:*");
  std::vector<Descriptor> strangers;
  std::size_t taken = 0; // by the port or by the system's buffers
  const std::string block = part_of(std::string(kMiB, 'x'), false);
  for (int i = 0; i < 32; ++i) {
    strangers.push_back(dial(endpoint));
    REQUIRE(say_all(strangers.back(), dealer_hello()));
    ::fcntl(strangers.back().number(), F_SETFL, O_NONBLOCK);
  }
  const std::size_t before = resident_bytes();
  std::vector<std::size_t> said(strangers.size()); // bytes of the block that each has sent
  for (int round = 0; round < 40; ++round)
    for (std::size_t i = 0; i < strangers.size(); ++i)
      if (const auto sent = ::send(strangers[i].number(), block.data() + said[i],
                                   block.size() - said[i], MSG_NOSIGNAL);
          sent > 0) {
        taken += static_cast<std::size_t>(sent);
        said[i] = (said[i] + static_cast<std::size_t>(sent)) % block.size();
      }
  CHECK_LT(resident_bytes(), before + 128 * kMiB);
  // When its messages are taken, the port reads the rest.
  std::size_t messages = 0;
  CHECK(testing::comes_true([&] {
    while (port.try_receive())
      ++messages;
    return messages >= taken / block.size() / 2;
  }));
}

TEST_CASE("Peers that do not read their answers are disconnected, and others are served") {
  PlainPort port({.max_unread_bytes = 16 * kMiB});
  const std::string endpoint = port.bind("tcp://127.0.0.1:*");
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(dial(endpoint));
    REQUIRE(say_all(strangers.back(), dealer_hello() + part_of("", true) + part_of("ask", false)));
  }
  const std::size_t before = resident_bytes();
  std::vector<std::string> peers;
  CHECK(testing::comes_true([&] {
    while (const auto got = port.try_receive())
      peers.push_back(got->peer);
    return peers.size() == strangers.size();
  }));
  std::size_t most = 0;
  for (int round = 0; round < 16; ++round)
    for (const std::string& peer : peers) {
      std::vector<Frame> answer;
      Frame& frame = answer.emplace_back(kMiB);
      std::fill(frame.bytes().begin(), frame.bytes().end(), std::byte{7});
      port.send(peer, std::move(answer));
      most = std::max(most, resident_bytes());
    }
  CHECK_LT(most, before + 64 * kMiB);
  CHECK_GE(port.disconnected(), 10);
  Context context;
  Socket client(context, SocketType::dealer);
  client.connect(endpoint);
  REQUIRE(client.send({.peer = "", .header = "hello", .frames = {}}, Clock::now() + seconds(20)));
  std::optional<PlainPort::Received> got;
  REQUIRE(testing::comes_true([&] { return (got = port.try_receive()).has_value(); }));
  std::vector<Frame> answer;
  answer.emplace_back(std::as_bytes(std::span("hello", 5)));
  CHECK(port.send(got->peer, std::move(answer)));
  CHECK_EQ(receive(client).header, "hello");
}

TEST_CASE("The system holds less than 1 MiB of answers for a peer that does not read") {
  PlainPort port({.max_unread_bytes = kMiB});
  const Descriptor stranger = dial(port.bind("tcp://127.0.0.1:*"));
  REQUIRE(say_all(stranger, dealer_hello() + part_of("ask", false)));
  std::optional<PlainPort::Received> asked;
  REQUIRE(testing::comes_true([&] { return (asked = port.try_receive()).has_value(); }));
  std::size_t said = 0;
  CHECK(testing::comes_true([&] { // between two calls, the port's thread writes
    std::vector<Frame> answer;
    answer.emplace_back(16 << 10);
    port.send(asked->peer, std::move(answer));
    said += 16 << 10;
    return port.disconnected() == 1;
  }));
  CHECK_GE(said, kMiB);
  CHECK_LT(said, 2 * kMiB);
}

TEST_CASE("A peer that reads its answers late receives all of them") {
  constexpr std::size_t kQuestions = 4000;
  constexpr std::size_t kBytes = 16 << 10;
  PlainPort port({});
  const Descriptor peer = dial(port.bind("tcp://127.0.0.1:*"));
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(peer.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const std::string question = part_of(std::string(kBytes, 'q'), false);
  std::jthread asking([&] {
    REQUIRE(say_all(peer, dealer_hello()));
    for (std::size_t i = 0; i < kQuestions; ++i)
      REQUIRE(say_all(peer, question));
  });
  std::size_t expected = zmtp_hello("ROUTER").size();
  std::size_t answered = 0, heard = 0;
  std::vector<char> buffer(kBytes);
  while (answered < kQuestions || heard < expected) {
    while (const auto got = port.try_receive()) {
      std::vector<Frame> answer;
      answer.emplace_back(kBytes);
      port.send(got->peer, std::move(answer));
      expected += question.size();
      ++answered;
    }
    if (heard == expected)
      continue;
    const std::size_t most = heard < 4 * kMiB ? 16 : buffer.size(); // slowly at first
    const auto count = ::recv(peer.number(), buffer.data(), most, 0);
    if (count <= 0)
      ::shutdown(peer.number(), SHUT_RDWR); // else `asking` would never end
    REQUIRE(count > 0);
    heard += static_cast<std::size_t>(count);
  }
  CHECK_EQ(answered, kQuestions);
  CHECK_EQ(heard, expected);
}

TEST_CASE("A server that runs out of descriptors survives and serves again") {
  const TemporaryFolder folder;
  rlimit kept{};
  REQUIRE_EQ(::getrlimit(RLIMIT_NOFILE, &kept), 0);
  for (const std::string& at :
       {std::string("tcp://127.0.0.1:*"), "ipc://" + (folder / "s").string()}) {
    Context context;
    Socket server(context, SocketType::router);
    const std::string endpoint = server.bind(at);
    check_served(context, server, endpoint);
    std::vector<Descriptor> strangers;
    for (int i = 0; i < 40; ++i)
      strangers.push_back(dial(endpoint));
    const auto lowest = static_cast<rlim_t>(strangers.back().number());
    strangers.clear();
    // Now clients use half of the descriptors, so that not all of the server's ends fit.
    const rlimit few{lowest + 1, kept.rlim_max};
    REQUIRE_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < 40; ++i)
      strangers.push_back(dial(endpoint));
    strangers.clear();
    REQUIRE_EQ(::setrlimit(RLIMIT_NOFILE, &kept), 0);
    check_served(context, server, endpoint);
  }
}

TEST_CASE(
    "A server takes over the socket path of a dead server, but not of a live server or a file") {
  const TemporaryFolder folder;
  const std::string path = (folder / "socket").string();
  Context context;
  {
    Socket first(context, SocketType::router);
    first.bind("ipc://" + path);
    Socket second(context, SocketType::router);
    CHECK_THROWS_WITH_AS(second.bind("ipc://" + path), doctest::Contains("Address already in use"),
                         std::runtime_error);
    check_served(context, first, "ipc://" + path);
  }
  CHECK_FALSE(std::filesystem::exists(path)); // removed together with its server
  std::ofstream(path) << "precious";
  Socket third(context, SocketType::router);
  CHECK_THROWS_WITH_AS(third.bind("ipc://" + path), doctest::Contains("not a socket"),
                       std::runtime_error);
  CHECK_EQ(read_text(path), "precious");
  std::filesystem::remove(path);
  { // a socket file without a listener, as after kill -9
    const Descriptor left(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE_EQ(::bind(left.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
               0);
  }
  REQUIRE(std::filesystem::exists(path));
  third.bind("ipc://" + path);
  check_served(context, third, "ipc://" + path);
  CHECK_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

} // namespace
} // namespace troupe::env::wire
