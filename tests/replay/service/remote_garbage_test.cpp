#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>

#include <doctest/doctest.h>

#include "env/wire/socket.hpp"
#include "replay/service/shard_client.hpp"
#include "replay/service/shard_host.hpp"
#include "replay/service/wire_format.hpp"
#include "tests/env/wire/receive.hpp"
#include "tests/env/wire/zmtp_peer.hpp"
#include "tests/replay/service/service_tests.hpp"
#include "tests/replay/writers/episodes.hpp"

namespace troupe::replay {
namespace {

using env::wire::dealer_hello;
using env::wire::Descriptor;
using env::wire::dial;
using env::wire::Frame;
using env::wire::Message;
using env::wire::say_all;
using env::wire::Socket;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TableConfig kSmall{.max_items = 2000,
                             .limiter = {.minimum_items = 1, .error_buffer = 1e9}};
constexpr std::size_t kMostFrame = std::size_t{1} << 20;

/// A port with two tables: strangers send arbitrary messages to one, a client uses the other.
struct Port {
  Port()
      : host(context,
             {{.name = "good", .config = kSmall, .signature = pixel_spec(3, 3), .seed = 1},
              {.name = "other", .config = kSmall, .signature = pixel_spec(2, 2), .seed = 2}},
             {.server = {.max_frame_bytes = kMostFrame}, .report_after = seconds(3600)}) {}
  env::wire::Context context;
  ShardHost host;
};

/// Writes and samples, comparing bit for bit, for at least `rounds` rounds and until `done`.
template <typename Done>
void play(Port& port, int rounds, Done done) {
  const TransitionSpec spec = pixel_spec(3, 3);
  ShardClient client(port.context, port.host.endpoint(), spec, {.table = "good"});
  Source source(spec, 77);
  Batch batch(spec, 32);
  const Deadline end = soon();
  for (int round = 0; (round < rounds || !done()) && Clock::now() < end; ++round) {
    REQUIRE(client.insert(source.next(5), soon()));
    REQUIRE(client.flush(soon()));
    REQUIRE_EQ(client.sample(32, batch.view(), 0, soon()), 32);
    for (std::size_t row = 0; row < batch.rows; ++row)
      source.player.check_row(batch, row);
  }
  CHECK(done());
}

wire::Envelope head_for_other() {
  return envelope(fingerprint(pixel_spec(2, 2)), "other");
}

/// A message of a random kind, as clients send them.
Message any_message(Source& source, std::mt19937_64& random) {
  wire::Envelope head = head_for_other();
  switch (random() % 8) {
  case 0:
    head.mutable_sample()->set_request(random());
    head.mutable_sample()->set_count(1 + static_cast<std::int64_t>(random() % 20));
    head.mutable_sample()->set_patience_ms(random() % 2);
    break;
  case 1:
    head.mutable_ping()->set_ping(random());
    head.mutable_ping()->add_writers(5);
    head.mutable_ping()->add_sequences(random() % 100);
    break;
  case 2:
    head.mutable_update()->set_request(1);
    head.mutable_update()->add_keys(random() % 1000);
    head.mutable_update()->add_priorities(1);
    break;
  case 3:
    head.mutable_stats()->set_request(1);
    break;
  case 4:
    head.mutable_info()->set_request(1);
    break;
  case 5:
    head.set_protocol(static_cast<std::uint32_t>(random() % 100));
    head.mutable_stats()->set_request(1);
    break;
  default:
    return encode_insertion(*source.next(1 + static_cast<std::int64_t>(random() % 6)),
                            fingerprint(pixel_spec(2, 2)), random() % 2 == 0, "other");
  }
  Message message;
  message.header = head.SerializeAsString();
  return message;
}

void mutate(Message& message, std::mt19937_64& random) {
  const std::size_t which = random() % (message.frames.size() + 2);
  if (which < 2 && !message.header.empty()) {
    message.header[random() % message.header.size()] ^= static_cast<char>(1U << random() % 8);
    if (random() % 8 == 0)
      message.header.resize(random() % (2 * message.header.size()));
    return;
  }
  if (message.frames.empty() || random() % 4 == 0) {
    message.frames.emplace_back(random() % 2000);
    return;
  }
  Frame& frame = message.frames[random() % message.frames.size()];
  if (random() % 3 == 0)
    frame = Frame(random() % (2 * frame.size() + 1));
  else if (frame.size() > 0)
    frame.bytes()[random() % frame.size()] ^= static_cast<std::byte>(1U << random() % 8);
}

/// Sends `messages` messages, most of them damaged, and reads the answers now and then. Returns
/// when the server has read them all: the last message is a request, and its answer has arrived.
void trouble(Port& port, std::uint64_t seed, int messages) {
  std::mt19937_64 random(seed);
  Source source(pixel_spec(2, 2), 1000 + seed);
  Socket socket(
      port.context, env::wire::SocketType::dealer,
      {.shared_memory = seed % 2 == 0 ? std::optional(env::wire::SharedMemory{}) : std::nullopt});
  socket.connect(port.host.endpoint());
  for (int i = 0; i < messages; ++i) {
    Message message = any_message(source, random);
    for (std::uint64_t k = random() % 4; k > 0; --k)
      mutate(message, random);
    socket.send(std::move(message), soon());
    if (i % 64 == 0)
      for (Message answer; socket.try_receive(answer) != Socket::Received::nothing;)
        continue;
  }
  // The port drops answers to a peer that does not read them. Once the peer has read all of them,
  // it may ask again.
  constexpr std::uint64_t kLast = 12345678;
  constexpr std::chrono::milliseconds kAnswerTime{500};
  const auto late = soon();
  for (wire::Envelope answer; answer.info_reply().request() != kLast;) {
    REQUIRE(std::chrono::steady_clock::now() < late);
    Message last;
    wire::Envelope head = head_for_other();
    head.mutable_info()->set_request(kLast);
    last.header = head.SerializeAsString();
    socket.send(std::move(last), late);
    while (answer.info_reply().request() != kLast
           && socket.wait(std::chrono::steady_clock::now() + kAnswerTime)) {
      Message given;
      if (socket.try_receive(given) == Socket::Received::message)
        CHECK(answer.ParseFromString(given.header));
    }
  }
}

TEST_CASE("Damaged messages of every kind and version do not affect other clients") {
  Port port;
  std::atomic<int> left = 3;
  std::vector<std::jthread> strangers;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    strangers.emplace_back([&, seed] {
      trouble(port, seed, 6000);
      --left;
    });
  play(port, 100, [&] { return left == 0; });
  const ShardServerCounters counters = port.host.counters();
  CHECK_GT(counters.garbage, 3000);
  CHECK_GT(port.host.stats(1).inserted, 100); // many of them were valid
}

TEST_CASE("Malformed messages and excessive lengths affect only their sender") {
  Port port;
  std::atomic<bool> done = false;
  std::jthread stranger([&] {
    std::mt19937_64 random(5);
    for (int i = 0; i < 300; ++i) {
      const Descriptor socket = dial(port.host.endpoint());
      if (!socket)
        continue;
      std::string noise(random() % 3000, '\0');
      for (char& c : noise)
        c = static_cast<char>(random());
      switch (i % 5) {
      case 0: // noise from the first byte on
        say_all(socket, noise);
        break;
      case 1: // ... or after a greeting
        say_all(socket, dealer_hello() + noise);
        break;
      case 2: // a frame of 2^63 - 1 bytes
        say_all(socket,
                dealer_hello() + std::string("\x02\x7f\xff\xff\xff\xff\xff\xff\xff", 9) + noise);
        break;
      case 3: // one just above the limit
        say_all(socket, dealer_hello() + std::string("\x02\0\0\0\0\x10\0\x10\x01", 9) + noise);
        break;
      default: // a message that never ends: 3000 parts that announce another
        std::string parts = dealer_hello();
        for (int part = 0; part < 3000; ++part)
          parts += std::string("\x01\x01x", 3);
        say_all(socket, parts);
      }
    }
    done = true;
  });
  play(port, 50, [&] { return done.load(); });
}

TEST_CASE("A peer with a ZMTP version before 3.0 is disconnected because ZeroMQ does not check its "
          "first bytes") {
  Port port;
  for (const std::string& begin : {std::string("\x05\x00noise", 7),
                                   std::string("\xff\0\0\0\0\0\0\0\x01\x7f\x01\x05\0\0", 14)}) {
    const Descriptor socket = dial(port.host.endpoint());
    REQUIRE(socket);
    const timeval limit{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(socket.number(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    say_all(socket, begin);
    char bytes[256];
    ssize_t got = 1;
    while (got > 0) // the port's greeting, then the end of the connection
      got = ::recv(socket.number(), bytes, sizeof bytes, 0);
    CHECK((got == 0 || errno == ECONNRESET));
  }
  play(port, 5, [] { return true; });
}

TEST_CASE("A part above the limits of frames and headers disconnects only its sender") {
  constexpr std::size_t kTooMany = std::max(kMostFrame, kHeaderBytes) + 1;
  Port port;
  std::atomic<bool> done = false;
  std::jthread stranger([&] {
    Socket socket(port.context, env::wire::SocketType::dealer);
    socket.connect(port.host.endpoint());
    for (int i = 0; i < 20; ++i) {
      Message message;
      message.header = head_for_other().SerializeAsString();
      message.frames.emplace_back(kTooMany);
      std::memset(message.frames[0].bytes().data(), 0, kTooMany);
      socket.send(std::move(message), soon());
    }
    done = true;
  });
  play(port, 50, [&] { return done.load(); });
  CHECK_EQ(port.host.stats(1).inserted, 0);
}

/// The port's reason for refusing this message.
std::string refusal(Socket& socket, Message message) {
  REQUIRE(socket.send(std::move(message), soon()));
  REQUIRE(socket.wait(soon()));
  Message answer;
  REQUIRE(socket.try_receive(answer) == Socket::Received::message);
  wire::Envelope told;
  REQUIRE(told.ParseFromString(answer.header));
  REQUIRE(told.has_refused());
  return told.refused().reason();
}

std::string refusal(Socket& socket, const wire::Envelope& head) {
  Message message;
  message.header = head.SerializeAsString();
  return refusal(socket, std::move(message));
}

TEST_CASE("An item whose shape hides rows of its transition is refused, counted and logged") {
  const TransitionSpec spec = pixel_spec(1, 3);
  env::wire::Context context;
  std::vector<std::string> log;
  std::mutex mutex;
  const auto shard =
      std::make_shared<HostedShard>(HostedTable{.config = kSmall, .signature = spec, .seed = 1});
  const auto note = [&](const std::string& text) {
    const std::scoped_lock lock(mutex);
    log.push_back(text);
  };
  const ShardServer server(
      context,
      {ServedTable{.signature = spec, .handlers = handlers_of(shard, note), .transitions = spec}});
  Source source(spec, 7);
  Insertion hidden = *source.next(4);
  ItemShape shape;
  shape.columns.assign(Signature(spec).columns.size(), std::vector<Slice>{Slice{0, 1}});
  hidden.items.back().shape = std::make_shared<const ItemShape>(shape);
  Socket socket(context, env::wire::SocketType::dealer);
  socket.connect(server.endpoint());
  const std::string why = "items that are not transitions of stack 1, n_step 3";
  const std::string told = refusal(socket, encode_insertion(hidden, fingerprint(spec), true));
  CHECK_NE(told.find(why), std::string::npos);
  CHECK_EQ(server.counters().garbage, 1);
  CHECK_EQ(shard->report().stats.inserted, 0);
  {
    const std::scoped_lock lock(mutex);
    REQUIRE_EQ(log.size(), 1);
    CHECK_NE(log[0].find("dropped " + why), std::string::npos);
  }
  Source other(spec, 8); // its transitions of three steps show only the rows that they need
  ShardClient client(context, server.endpoint(), spec);
  REQUIRE(client.insert(other.next(20), soon()));
  REQUIRE(client.flush(soon()));
  CHECK_GE(shard->report().stats.inserted, 20);
}

TEST_CASE("A refusal quotes a client's text in escaped form") {
  Port port;
  Socket socket(port.context, env::wire::SocketType::dealer);
  socket.connect(port.host.endpoint());
  for (const bool info : {false, true}) {
    wire::Envelope head = head_for_other();
    head.set_table("\xff\x1b[2J\n" + std::string(100'000, 'a'));
    if (info)
      head.mutable_info()->set_request(1);
    else
      head.mutable_stats()->set_request(1);
    const std::string reason = refusal(socket, head);
    CHECK_NE(reason.find("\"\\xff\\x1b[2J\\x0aaaa"), std::string::npos);
    CHECK_LT(reason.size(), 1000);
  }
}

TEST_CASE("Another protocol version is refused with an error that names both versions") {
  Port port;
  Socket socket(port.context, env::wire::SocketType::dealer);
  socket.connect(port.host.endpoint());
  wire::Envelope head = head_for_other();
  head.set_protocol(kProtocol + 1);
  head.mutable_stats()->set_request(1);
  const std::string reason = refusal(socket, head);
  CHECK_NE(reason.find("protocol " + std::to_string(kProtocol + 1) + " where this side speaks "
                       + std::to_string(kProtocol)),
           std::string::npos);
}

} // namespace
} // namespace troupe::replay
