#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

#include "env/processes/forked.hpp"
#include "env/wire/socket.hpp"
#include "tests/env/wire/named_mappings.hpp"
#include "tests/env/wire/receive.hpp"

namespace troupe::env::wire {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

const SocketOptions kShared{.max_frame_bytes = std::size_t{64} << 20,
                            .shared_memory = SharedMemory{.bytes_per_peer = std::size_t{4} << 20}};
constexpr std::size_t kFrame = 1'000'000;

/// A separate process that starts its work when it gets an endpoint. Must be created before any
/// thread.
class Child {
public:
  explicit Child(const std::function<void(const std::string&)>& body) {
    std::array<int, 2> ends{-1, -1};
    REQUIRE_EQ(::pipe(ends.data()), 0);
    process_ = start_child(SIGKILL, [&] {
      ::close(ends[1]);
      std::array<char, 256> text{};
      if (::read(ends[0], text.data(), text.size() - 1) > 0)
        body(text.data());
      ::_exit(0);
    });
    REQUIRE_GE(process_, 0);
    ::close(ends[0]);
    begin_ = ends[1];
  }
  ~Child() {
    kill();
    ::close(begin_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void begin(const std::string& endpoint) const {
    REQUIRE_EQ(::write(begin_, endpoint.data(), endpoint.size()), std::ssize(endpoint));
  }
  void kill() {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
    process_ = -1;
  }

private:
  pid_t process_ = -1;
  int begin_ = -1;
};

void send_frame(Socket& socket, const std::string& peer, int value) {
  Message message;
  message.peer = peer;
  message.header = std::to_string(value);
  message.frames.push_back(socket.frame(kFrame, peer));
  std::memset(message.frames[0].bytes().data(), value, kFrame);
  socket.send(std::move(message), Clock::now() + seconds(5));
}

bool is_frame_of(const Message& message) {
  if (message.frames.size() != 1 || message.frames[0].size() != kFrame)
    return false;
  const std::vector<std::byte> expected(kFrame, static_cast<std::byte>(std::stoi(message.header)));
  return std::memcmp(message.frames[0].bytes().data(), expected.data(), kFrame) == 0;
}

/// A dealer that sends frames forever, with only a few unanswered at a time.
void send_for_ever(const std::string& endpoint) {
  Context context;
  Socket socket(context, SocketType::dealer, kShared);
  socket.connect(endpoint);
  int sent = 0;
  for (int answered = 0;;) {
    while (sent - answered < 3)
      send_frame(socket, "", ++sent % 100);
    Message message;
    if (socket.wait(Clock::now() + seconds(20))
        && socket.try_receive(message) == Socket::Received::message)
      ++answered;
  }
}

/// A dealer that requests frames and keeps all of them.
void keep_for_ever(const std::string& endpoint) {
  Context context;
  Socket socket(context, SocketType::dealer, kShared);
  socket.connect(endpoint);
  std::vector<Message> kept;
  for (;;) {
    Message question;
    question.header = "more";
    socket.send(std::move(question), Clock::now() + seconds(5));
    Message message;
    if (socket.wait(Clock::now() + seconds(20))
        && socket.try_receive(message) == Socket::Received::message && kept.size() < 50)
      kept.push_back(std::move(message));
  }
}

/// Waits until the socket has only `links` peers left.
void wait_for_links(Socket& socket, std::int64_t links) {
  const auto end = Clock::now() + seconds(20);
  while (socket.shared_counters().links != links) {
    REQUIRE(Clock::now() < end);
    Message message;
    if (socket.wait(Clock::now() + milliseconds(5)))
      socket.try_receive(message);
  }
}

TEST_CASE("Only the received frames of a killed sender remain, and a new sender can connect") {
  Child first(send_for_ever);
  Child second(send_for_ever);
  Context context;
  Socket router(context, SocketType::router, kShared);
  const std::string endpoint = router.bind("tcp://127.0.0.1:*");
  for (Child* child : {&first, &second}) {
    child->begin(endpoint);
    const std::int64_t before = router.shared_counters().frames_received;
    Message last;
    while (router.shared_counters().frames_received < before + 20) {
      last = receive(router);
      REQUIRE(is_frame_of(last));
      Message answer;
      answer.peer = last.peer;
      router.send(std::move(answer), Clock::now());
    }
    child->kill();
    wait_for_links(router, 0);
    CHECK(is_frame_of(last));
    CHECK_EQ(named_mappings(), 0);
  }
  CHECK_EQ(router.shared_counters().lost, 0);
}

TEST_CASE("A receiver that keeps all frames gets later ones in messages, and its death frees the "
          "memory") {
  Child first(keep_for_ever);
  Child second(keep_for_ever);
  Context context;
  Socket router(context, SocketType::router, kShared);
  const std::string endpoint = router.bind("tcp://127.0.0.1:*");
  for (Child* child : {&first, &second}) {
    child->begin(endpoint);
    const SharedCounters before = router.shared_counters();
    for (int i = 0; router.shared_counters().full < before.full + 5; ++i) {
      REQUIRE_LT(i, 1000);
      send_frame(router, receive(router).peer, i % 100);
    }
    CHECK_EQ(router.shared_counters().frames_sent - before.frames_sent, 4); // 1 MB each, in 4 MiB
    child->kill();
    wait_for_links(router, 0);
  }
}

TEST_CASE("A dealer whose router is killed shares memory with the next router") {
  constexpr const char* kPort = "ipc:///tmp/troupe-shared-process-test";
  const std::string endpoint = std::string(kPort) + std::to_string(::getpid());
  const auto serve = [](const std::string& where) {
    Context context;
    Socket router(context, SocketType::router, kShared);
    router.bind(where);
    for (;;) {
      Message message;
      if (router.wait(Clock::now() + seconds(20))
          && router.try_receive(message) == Socket::Received::message && is_frame_of(message))
        router.send(std::move(message), Clock::now());
    }
  };
  Child first(serve);
  Child second(serve);
  Context context;
  Socket dealer(context, SocketType::dealer, kShared);
  dealer.connect(endpoint);
  for (Child* child : {&first, &second}) {
    child->begin(endpoint);
    const SharedCounters before = dealer.shared_counters();
    const auto end = Clock::now() + seconds(30);
    while (dealer.shared_counters().frames_received < before.frames_received + 10) {
      REQUIRE(Clock::now() < end);
      send_frame(dealer, "", 7);
      Message message;
      if (dealer.wait(Clock::now() + milliseconds(50))
          && dealer.try_receive(message) == Socket::Received::message)
        REQUIRE(is_frame_of(message));
    }
    child->kill();
    wait_for_links(dealer, 0);
  }
  std::filesystem::remove(endpoint.substr(6));
}

} // namespace
} // namespace troupe::env::wire
