#include "actors/remoting/remoting.hpp"

#include <doctest/doctest.h>

#include <caf/io/all.hpp>
#include <openssl/ssl.h>
#include <sys/resource.h>

#include "actors/protocol/system.hpp"
#include "actors/remoting/certificates.hpp"
#include "actors/remoting/descriptor_limit.hpp"
#include "actors/remoting/own_middleman.hpp"
#include "actors/remoting/tls.hpp"
#include "tests/actors/peers.hpp"
#include "tests/another_user.hpp"
#include "tests/resident_bytes.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"
#include "tests/told.hpp"

namespace troupe::actors {
namespace {

using namespace testing;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Any actor that answers with bytes will do. This one echoes each message and counts them.
using EchoActor = caf::typed_actor<caf::replies_to<ProtoBytes>::with<ProtoBytes>>;
using OtherActor = caf::typed_actor<caf::replies_to<caf::put_atom, ProtoBytes>::with<ProtoBytes>>;

EchoActor::behavior_type echo(EchoActor::pointer, std::atomic<int>* heard) {
  return {[heard](const ProtoBytes& said) {
    ++*heard;
    return said;
  }};
}

std::shared_ptr<const ClusterKeys> keys_of(WallClock::time_point now = WallClock::now(),
                                           KeyValidity validity = {}) {
  const TemporaryFolder scratch;
  make_cluster_keys(scratch / "keys", now, validity);
  return std::make_shared<ClusterKeys>(read_cluster_keys(scratch / "keys", now));
}

/// The parts of one process. A test has several in this process.
struct Side {
  SystemConfig config;
  caf::actor_system system;
  Remoting remoting;

  explicit Side(RemotingOptions options)
      : config(true), system(config), remoting(system, std::move(options)) {}
};

/// Serves an echo on the loopback interface, with TLS.
struct Server {
  Told told;
  std::atomic<int> heard = 0;
  Side side;
  EchoActor actor;
  std::uint16_t port;

  explicit Server(std::shared_ptr<const ClusterKeys> keys, milliseconds deadline = seconds(5),
                  std::size_t most = 256)
      : side({.keys = std::move(keys),
              .handshake_deadline = deadline,
              .most_handshakes = most,
              .on_stranger = told.listener()}),
        actor(side.system.spawn(echo, &heard)),
        port(side.remoting.publish(actor, "127.0.0.1")) {}
  ~Server() { caf::anon_send_exit(actor, caf::exit_reason::user_shutdown); }

  void wait_for_strangers(std::int64_t count) const {
    REQUIRE(comes_true([&] { return side.remoting.strangers() >= count; }));
  }
};

ProtoBytes asked(Side& side, const EchoActor& actor, const std::string& text) {
  const caf::scoped_actor self(side.system);
  ProtoBytes answer;
  self->request(actor, seconds(30), ProtoBytes{text})
      .receive([&](const ProtoBytes& got) { answer = got; },
               [&](const caf::error& error) { answer.bytes = explain(side.system, error); });
  return answer;
}

std::string refusal(Side& side, int port) {
  return error_of<std::runtime_error>(
      [&] { side.remoting.connect<EchoActor>("127.0.0.1", static_cast<std::uint16_t>(port)); });
}

/// Checks that an honest node is still served.
void check_served(Server& server, const std::shared_ptr<const ClusterKeys>& keys) {
  Side honest({.keys = keys});
  const auto actor = honest.remoting.connect<EchoActor>("127.0.0.1", server.port);
  CHECK_EQ(asked(honest, actor, "hello").bytes, "hello");
}

TEST_CASE("Nodes of one deployment reach each other's actors") {
  const auto keys = keys_of();
  Server server(keys);
  Side node({.keys = keys});
  const auto actor = node.remoting.connect<EchoActor>("127.0.0.1", server.port);
  CHECK_EQ(asked(node, actor, "hello").bytes, "hello");
  const std::string large(std::size_t{5} << 20, 'x'); // many records; exceeds the socket buffers
  CHECK_EQ(asked(node, actor, large).bytes, large);
  CHECK_EQ(server.side.remoting.strangers(), 0);
  CHECK_THROWS_WITH_AS(node.remoting.connect<OtherActor>("127.0.0.1", server.port),
                       doctest::Contains("another protocol"), std::runtime_error);
}

TEST_CASE("Many concurrent nodes are served") {
  const auto keys = keys_of();
  Server server(keys);
  std::vector<std::unique_ptr<Side>> nodes;
  for (int i = 0; i < 8; ++i)
    nodes.push_back(std::make_unique<Side>(RemotingOptions{.keys = keys}));
  std::vector<EchoActor> actors;
  for (auto& node : nodes)
    actors.push_back(node->remoting.connect<EchoActor>("127.0.0.1", server.port));
  for (int round = 0; round < 20; ++round)
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::string text(static_cast<std::size_t>(round) * 1700 + i, 'y');
      CHECK_EQ(asked(*nodes[i], actors[i], text).bytes, text);
    }
}

TEST_CASE("Without keys, actors are published and reached only on the loopback interface") {
  Side side({});
  std::atomic<int> heard = 0;
  const auto actor = side.system.spawn(echo, &heard);
  CHECK_THROWS_WITH_AS(side.remoting.publish(actor, "0.0.0.0"),
                       doctest::Contains("troupe keys cluster DIR"), std::invalid_argument);
  CHECK_THROWS_AS(side.remoting.publish(actor, "127.example.org"), std::invalid_argument);
  CHECK_THROWS_AS(side.remoting.publish(actor, ""), std::invalid_argument);
  CHECK_THROWS_AS(side.remoting.connect<EchoActor>("example.org", 7000), std::invalid_argument);
  const auto port = side.remoting.publish(actor, "127.0.0.1");
  Side other({});
  CHECK_EQ(asked(other, other.remoting.connect<EchoActor>("127.0.0.1", port), "hello").bytes,
           "hello");
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

TEST_CASE("Without keys, each side refuses another user's process before it reads any data") {
  if (::geteuid() != 0) {
    MESSAGE("skipped: only root can act as another user");
    return;
  }
  Server server(nullptr);
  std::unique_ptr<Side> theirs; // its threads belong to another user permanently
  collectives::Socket stranger;
  {
    const tests::AnotherUser user;
    theirs = std::make_unique<Side>(RemotingOptions{});
    stranger = connected_to(server.port);
  }
  CHECK(is_closed(stranger));
  CHECK_THROWS_WITH_AS(theirs->remoting.connect<EchoActor>("127.0.0.1", server.port, seconds(20)),
                       doctest::Contains("belongs to another user of this host (user id 0)"),
                       std::runtime_error);
  server.wait_for_strangers(2);
  REQUIRE_EQ(server.told.all().size(), 1);
  CHECK(has(server.told.all()[0], "another user"));
  std::atomic<int> heard = 0;
  const auto trap = theirs->system.spawn(echo, &heard);
  const auto port = theirs->remoting.publish(trap, "127.0.0.1");
  CHECK_THROWS_WITH_AS(server.side.remoting.connect<EchoActor>("127.0.0.1", port, seconds(20)),
                       doctest::Contains("(user id 65534)"), std::runtime_error);
  CHECK_EQ(heard, 0);
  caf::anon_send_exit(trap, caf::exit_reason::user_shutdown);
  check_served(server, nullptr);
  CHECK_EQ(server.heard, 1);
}

/// The first message of a plain connection: CAF's header, in network byte order, and a payload of
/// which only the length is announced.
std::string plain_header(int operation, std::uint32_t payload_bytes) {
  std::string header(32, '\0');
  header[0] = static_cast<char>(operation);
  for (int i = 0; i < 4; ++i)
    header[static_cast<std::size_t>(4 + i)] = static_cast<char>(payload_bytes >> (24 - 8 * i));
  return header;
}

TEST_CASE("Without keys, a peer that does not complete its handshake is disconnected at the "
          "deadline") {
  Server server(nullptr, milliseconds(300));
  const auto silent = connected_to(server.port);
  const auto slow = connected_to(server.port);
  REQUIRE(say(slow, plain_header(1, 40)));
  Side node({});
  const auto actor = node.remoting.connect<EchoActor>("127.0.0.1", server.port);
  CHECK(is_closed(silent));
  CHECK(is_closed(slow));
  server.wait_for_strangers(2);
  REQUIRE_EQ(server.told.all().size(), 1);
  CHECK(has(server.told.all()[0], "no handshake within 300 ms"));
  CHECK_EQ(asked(node, actor, "later than the deadline").bytes, "later than the deadline");
  CHECK(comes_true([&] { return server.side.remoting.handshakes() == 0; }));
  CHECK_EQ(server.side.remoting.strangers(), 2);
}

TEST_CASE("Without keys, a peer may announce little memory before its handshake") {
  for (const auto& [header, reason] : std::vector<std::pair<std::string, std::string>>{
           {plain_header(1, 4097), "4097 bytes, above 4096, before its handshake"},
           {plain_header(1, 60 << 20), "before its handshake"},
           {plain_header(1, 0), "a message without a payload"},
           {plain_header(2, 40), "did not begin with a handshake"},
           {plain_header(6, 0), "did not begin with a handshake"}}) {
    CAPTURE(reason);
    Server server(nullptr, hours(1));
    const auto socket = connected_to(server.port);
    REQUIRE(say(socket, header));
    CHECK(is_closed(socket));
    server.wait_for_strangers(1);
    REQUIRE_EQ(server.told.all().size(), 1);
    CHECK(has(server.told.all()[0], reason));
    check_served(server, nullptr);
    CHECK_EQ(server.side.remoting.strangers(), 1);
  }
}

TEST_CASE("Without keys, a message without a payload closes its connection") {
  Server server(nullptr);
  std::string handshake;
  {
    Relay relay(server.port);
    Side node({});
    const auto actor =
        node.remoting.connect<EchoActor>("127.0.0.1", static_cast<std::uint16_t>(relay.port()));
    CHECK_EQ(asked(node, actor, "once").bytes, "once");
    handshake = relay.recorded();
  }
  REQUIRE_GT(handshake.size(), 32);
  handshake.resize(32 + static_cast<std::size_t>(handshake[7])); // shorter than 128 bytes
  const auto socket = connected_to(server.port);
  REQUIRE(say(socket, handshake + plain_header(2, 0)));
  CHECK(is_closed(socket));
  server.wait_for_strangers(1);
  REQUIRE_EQ(server.told.all().size(), 1);
  CHECK(has(server.told.all()[0], "a message without a payload"));
  check_served(server, nullptr);
}

TEST_CASE("Without keys, connections without a handshake are bounded in number and memory") {
  Server server(nullptr, hours(1), 32); // with a deadline too long to help
  const std::size_t before = resident_bytes();
  std::vector<collectives::Socket> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(connected_to(server.port));
    say(silent.back(), plain_header(1, 4096));
    if (i % 50 == 49)
      check_served(server, nullptr);
  }
  server.wait_for_strangers(200 - 32);
  CHECK_LE(server.side.remoting.handshakes(), 32);
  CHECK_LT(resident_bytes(), before + (std::size_t{64} << 20));
  CHECK(is_closed(silent.front()));
  check_served(server, nullptr);
  REQUIRE_EQ(server.told.all().size(), 3); // the 1st, 10th and 100th
  CHECK(has(server.told.all()[0], "too many connections without a handshake"));
  CHECK(has(server.told.all()[2], "(100 refused so far)"));
}

TEST_CASE("A reserved port cannot be taken before an actor is published there") {
  for (const auto& keys : {std::shared_ptr<const ClusterKeys>(), keys_of()}) {
    CAPTURE(keys != nullptr);
    Side side({.keys = keys});
    const auto port = side.remoting.reserve("127.0.0.1");
    CHECK_THROWS_AS(collectives::listen_at("127.0.0.1", port), std::runtime_error);
    std::atomic<int> heard = 0;
    const auto actor = side.system.spawn(echo, &heard);
    CHECK_EQ(side.remoting.publish(actor, "127.0.0.1", port), port);
    Side other({.keys = keys});
    CHECK_EQ(asked(other, other.remoting.connect<EchoActor>("127.0.0.1", port), "hello").bytes,
             "hello");
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }
}

TEST_CASE("A port is free once its remoting has ended, although the actor system lives on") {
  for (const auto& keys : {std::shared_ptr<const ClusterKeys>(), keys_of()}) {
    CAPTURE(keys != nullptr);
    SystemConfig config(true);
    caf::actor_system system(config);
    std::atomic<int> heard = 0;
    const auto actor = system.spawn(echo, &heard);
    std::uint16_t port = 0;
    std::string problem;
    for (int round = 0; round < 20 && problem.empty(); ++round) {
      Remoting remoting(system, {.keys = keys});
      try {
        port = remoting.publish(actor, "127.0.0.1", port);
        Side other({.keys = keys});
        CHECK_EQ(asked(other, other.remoting.connect<EchoActor>("127.0.0.1", port), "hello").bytes,
                 "hello");
      } catch (const std::runtime_error& error) {
        problem = error.what();
      }
    }
    CHECK_EQ(problem, "");
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  }
}

TEST_CASE("With keys, an actor can be published off the loopback interface") {
  const auto keys = keys_of();
  Side side({.keys = keys});
  std::atomic<int> heard = 0;
  const auto actor = side.system.spawn(echo, &heard);
  const auto port = side.remoting.publish(actor, "0.0.0.0");
  Side other({.keys = keys});
  CHECK_EQ(asked(other, other.remoting.connect<EchoActor>("127.0.0.1", port), "hello").bytes,
           "hello");
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

TEST_CASE("A port in use and a closed port are reported with their causes") {
  const auto keys = keys_of();
  Server server(keys);
  Side side({.keys = keys});
  std::atomic<int> heard = 0;
  const auto actor = side.system.spawn(echo, &heard);
  CHECK_THROWS_WITH_AS(side.remoting.publish(actor, "127.0.0.1", server.port),
                       doctest::Contains("in use"), std::runtime_error);
  int nobody = 0;
  {
    const auto closed_again = collectives::listen_at("127.0.0.1", 0);
    nobody = collectives::port_of(closed_again);
  }
  CHECK(has(refusal(side, nobody), "refused"));
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

TEST_CASE("Unauthenticated peers are refused with a reason and logged once, and honest nodes are "
          "unaffected") {
  const auto keys = keys_of();
  Server server(keys);
  const auto port = server.port;

  Side other_deployment({.keys = keys_of()});
  CHECK_NE(refusal(other_deployment, port), "");
  server.wait_for_strangers(1);

  const auto now = WallClock::now();
  auto expired = std::make_shared<ClusterKeys>(*keys);
  auto unsigned_by_us = std::make_shared<ClusterKeys>(*keys);
  const SignedKey authority = make_authority(now - hours(100), hours(1000));
  const SignedKey old = make_node(authority, now - hours(50), hours(10));
  expired->authority = unsigned_by_us->authority = keys->authority + authority.certificate;
  unsigned_by_us->node = [&] {
    const SignedKey node = make_node(authority, now, hours(10));
    return node.certificate + node.secret;
  }();
  expired->node = old.certificate + old.secret;
  Side stranger({.keys = unsigned_by_us}); // trusts us; we do not trust it
  CHECK(has(refusal(stranger, port), "alert"));
  server.wait_for_strangers(2);

  auto trusting = std::make_shared<ClusterKeys>(*keys);
  trusting->authority += authority.certificate;
  Server trusting_server(trusting);
  Side late({.keys = expired});
  CHECK(has(refusal(late, trusting_server.port), "expired"));
  trusting_server.wait_for_strangers(1);
  REQUIRE_EQ(trusting_server.told.all().size(), 1);
  CHECK(has(trusting_server.told.all()[0], "certificate has expired"));
  // The other way round: a client refuses an expired server.
  Server late_server(expired);
  Side careful({.keys = trusting});
  CHECK(has(refusal(careful, late_server.port), "certificate has expired"));

  check_served(server, keys);
  CHECK_EQ(server.told.all().size(), 1);
  CHECK_EQ(server.heard, 1);
}

TEST_CASE("A peer without keys, without a certificate or with an old TLS version is refused") {
  const auto keys = keys_of();
  Server server(keys, milliseconds(500));
  Side plain({});
  try {
    plain.remoting.connect<EchoActor>("127.0.0.1", server.port, seconds(5));
    CHECK(false);
  } catch (const std::runtime_error& error) {
    CHECK(has(error.what(), "cannot reach 127.0.0.1"));
  }
  server.wait_for_strangers(1);

  // A TLS client without a certificate.
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_method()),
                                                                  SSL_CTX_free);
  const auto socket = connected_to(server.port);
  const std::unique_ptr<SSL, decltype(&SSL_free)> session(SSL_new(context.get()), SSL_free);
  SSL_set_fd(session.get(), socket.fd());
  REQUIRE(comes_true([&] { return SSL_connect(session.get()) == 1; })); // it is refused later
  CHECK(is_closed(socket));
  server.wait_for_strangers(2);

  // An older version of TLS, with a valid certificate.
  const TemporaryFolder scratch;
  const std::string pem = (scratch / "node.pem").string();
  std::ofstream(pem) << keys->node;
  REQUIRE_EQ(SSL_CTX_use_certificate_chain_file(context.get(), pem.c_str()), 1);
  REQUIRE_EQ(SSL_CTX_use_PrivateKey_file(context.get(), pem.c_str(), SSL_FILETYPE_PEM), 1);
  SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  const auto old_socket = connected_to(server.port);
  const std::unique_ptr<SSL, decltype(&SSL_free)> old(SSL_new(context.get()), SSL_free);
  SSL_set_fd(old.get(), old_socket.fd());
  CHECK_NE(SSL_connect(old.get()), 1);
  CHECK(is_closed(old_socket));
  server.wait_for_strangers(3);
  check_served(server, keys);
  CHECK_EQ(server.told.all().size(), 1);
}

TEST_CASE("A head raises its descriptor limit to the maximum that the system allows") {
  rlimit limit{};
  REQUIRE_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit low = limit;
  low.rlim_cur = 256;
  REQUIRE_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  CHECK_EQ(raise_descriptor_limit(), limit.rlim_max);
  rlimit raised{};
  REQUIRE_EQ(::getrlimit(RLIMIT_NOFILE, &raised), 0);
  CHECK_EQ(raised.rlim_cur, limit.rlim_max);
  REQUIRE_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_CASE("A message whose announced length is too large is refused before memory is allocated") {
  // Without keys, any process of the host can reach CAF's own parser.
  Server server(nullptr);
  const auto memory = resident_bytes();
  const auto announce = [&](std::uint32_t bytes) {
    std::string header(32, '\0');
    header[0] = 1; // a client's handshake, which has a payload
    for (std::size_t i = 0; i < 4; ++i)
      header[4 + i] = static_cast<char>(bytes >> (24 - 8 * i));
    const auto socket = connected_to(server.port);
    REQUIRE(say(socket, header + "payload"));
    CHECK(is_closed(socket));
  };
  for (const std::uint32_t bytes : {std::uint32_t{0x04000001}, ~std::uint32_t{0}})
    announce(bytes);
  server.wait_for_strangers(2);
  CHECK(resident_bytes() < memory + (std::size_t{64} << 20));
  REQUIRE_EQ(server.told.all().size(), 1);
  CHECK(has(server.told.all()[0],
            "announced a message of 67108865 bytes, above 4096, before its handshake"));
  check_served(server, nullptr);
}

TEST_CASE("Without keys, garbage, silence and broken connections do not disturb other clients") {
  Server server(nullptr);
  std::vector<collectives::Socket> strangers;
  for (const std::string& words :
       {std::string(4096, '\x5a'), std::string(64, '\0'), std::string(64, '\xff'),
        std::string(32, '\x02'), std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\x01"),
        std::string()})
    for (int i = 0; i < 20; ++i) {
      strangers.push_back(connected_to(server.port));
      say(strangers.back(), words);
      if (i % 2 == 0)
        strangers.pop_back(); // disconnects
    }
  check_served(server, nullptr);
  CHECK_EQ(server.heard, 1);
}

TEST_CASE("A peer with another version of the protocol is reported as such") {
  const auto keys = keys_of();
  const auto listener = collectives::listen_at("127.0.0.1", 0);
  const TlsContext context(*keys);
  std::jthread other([&] {
    const auto socket = collectives::accept_from(listener, Clock::now() + seconds(30));
    TlsSession session(context, socket.fd(), TlsSession::Side::listens);
    const bool known = comes_true([&] { return session.handshake() == TlsSession::State::done; });
    std::size_t sent = 0;
    if (known)
      session.write("troupe 9\n", 9, sent);
    is_closed(socket);
  });
  Side node({.keys = keys});
  CHECK(has(refusal(node, collectives::port_of(listener)), "another version of the protocol"));
}

TEST_CASE("Garbage and oversized records are refused") {
  const auto keys = keys_of();
  Server server(keys);
  const std::vector<std::string> attacks{
      std::string(100'000, '\xff'),
      "GET / HTTP/1.1\r\nHost: here\r\n\r\n",
      std::string("\x16\x03\x01\xff\xff", 5) + std::string(70'000, 'a'), // a record of 65,535 bytes
      std::string("\x16\x03\x01\x40\x00\x01\xff\xff\xff", 9) + std::string(16'380, 'a'), // of 16 MB
      std::string("\x17\x03\x03\x00\x05hello", 10),
      std::string("\x15\x03\x03\x00\x02\x02\x00", 7),
  };
  std::int64_t count = 0;
  for (const std::string& attack : attacks) {
    const auto socket = connected_to(server.port);
    say(socket, attack); // the server may close the connection meanwhile
    CHECK(is_closed(socket));
    server.wait_for_strangers(++count);
  }
  check_served(server, keys);
  CHECK_EQ(server.told.all().size(), 1);
}

TEST_CASE("A peer that sends nothing or a single byte is disconnected at the deadline") {
  const auto keys = keys_of();
  Server server(keys, milliseconds(300));
  const auto silent = connected_to(server.port);
  const auto slow = connected_to(server.port);
  REQUIRE(say(slow, "\x16"));
  check_served(server, keys);
  CHECK(is_closed(silent));
  CHECK(is_closed(slow));
  CHECK_EQ(server.side.remoting.strangers(), 2);
}

TEST_CASE("A peer that leaves without having sent a byte is no stranger") {
  const auto keys = keys_of();
  Server server(keys, hours(1));
  for (int i = 0; i < 20; ++i)
    connected_to(server.port);                     // disconnects, as a probe does
  REQUIRE(say(connected_to(server.port), "\x16")); // likewise, after a byte
  server.wait_for_strangers(1);
  CHECK(comes_true([&] { return server.side.remoting.handshakes() == 0; }));
  check_served(server, keys);
  CHECK_EQ(server.side.remoting.strangers(), 1);
}

TEST_CASE("Half-open connections are bounded, and honest nodes still connect") {
  const auto keys = keys_of();
  Server server(keys, hours(1), 32); // with a deadline too long to help
  const std::size_t before = resident_bytes();
  std::vector<collectives::Socket> silent;
  for (int i = 0; i < 400; ++i) {
    silent.push_back(connected_to(server.port));
    say(silent.back(), std::string("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc", 9)
                           + std::string(8'000, 'a')); // half a hello message
    if (i % 100 == 99)
      check_served(server, keys);
  }
  server.wait_for_strangers(400 - 32);
  CHECK_LE(server.side.remoting.handshakes(), 32);
  CHECK_LT(resident_bytes(), before + (std::size_t{64} << 20));
  CHECK(is_closed(silent.front()));
  check_served(server, keys);
  CHECK_EQ(server.told.all().size(), 3); // the 1st, 10th and 100th
}

TEST_CASE("Recorded traffic between honest nodes cannot be replayed") {
  const auto keys = keys_of();
  Server server(keys);
  Relay relay(server.port);
  {
    Side node({.keys = keys});
    const auto actor =
        node.remoting.connect<EchoActor>("127.0.0.1", static_cast<std::uint16_t>(relay.port()));
    CHECK_EQ(asked(node, actor, "once").bytes, "once");
  }
  CHECK_EQ(server.heard, 1);
  const auto replayed = connected_to(server.port);
  say(replayed, relay.recorded());
  CHECK(is_closed(replayed));
  server.wait_for_strangers(1);
  CHECK_EQ(server.heard, 1);
}

TEST_CASE("A connection cut at any point of the handshake does not disturb other connections") {
  const auto keys = keys_of();
  Server server(keys);
  std::int64_t count = 0;
  for (const std::size_t bytes : {1UL, 5UL, 100UL, 300UL, 600UL, 900UL}) {
    Relay relay(server.port);
    relay.cut_after(bytes);
    Side node({.keys = keys});
    CHECK_NE(refusal(node, relay.port()), "");
    server.wait_for_strangers(++count);
  }
  check_served(server, keys);
}

TEST_CASE("A falsified record closes the connection and delivers nothing") {
  const auto keys = keys_of();
  Server server(keys);
  Relay relay(server.port);
  Side node({.keys = keys});
  const auto actor =
      node.remoting.connect<EchoActor>("127.0.0.1", static_cast<std::uint16_t>(relay.port()));
  CHECK_EQ(asked(node, actor, "once").bytes, "once");
  const caf::scoped_actor self(node.system);
  self->monitor(actor);
  relay.falsify(relay.from_client() + 40);
  self->send(actor, ProtoBytes{std::string(100, 'z')});
  bool is_down = false;
  self->receive([&](const caf::down_msg&) { is_down = true; }, caf::after(seconds(30)) >> [] {});
  CHECK(is_down);
  CHECK_EQ(server.heard, 1);
  check_served(server, keys);
}

TEST_CASE("Connections to a listener break if their peers are unreachable for the given time") {
  Listeners listeners(milliseconds(1500));
  const auto reserved = listeners.reserve("127.0.0.1");
  for (const std::uint16_t port : {reserved, std::uint16_t{0}}) {
    const auto listener = listeners.take("127.0.0.1", port);
    const auto client = collectives::connect_to("127.0.0.1", collectives::port_of(listener),
                                                std::chrono::steady_clock::now() + seconds(30));
    const collectives::Socket accepted(::accept(listener.fd(), nullptr, nullptr));
    REQUIRE(accepted);
    unsigned milliseconds_of_it = 0;
    socklen_t size = sizeof milliseconds_of_it;
    REQUIRE(::getsockopt(accepted.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds_of_it, &size)
            == 0);
    CHECK_EQ(milliseconds_of_it, 1500);
  }
}

} // namespace
} // namespace troupe::actors
