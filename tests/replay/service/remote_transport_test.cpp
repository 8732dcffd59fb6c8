#include <doctest/doctest.h>

#include "env/wire/deployment_keys.hpp"
#include "env/wire/socket.hpp"
#include "replay/service/shard_client.hpp"
#include "replay/service/shard_host.hpp"
#include "replay/service/wire_format.hpp"
#include "tests/replay/service/service_tests.hpp"
#include "tests/replay/writers/episodes.hpp"

namespace troupe::replay {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

/// Writes and samples until `done`, checking every row. Returns the number of batches.
template <typename Done>
int play(ShardHost& served, ShardClient& client, const TransitionSpec& spec, Done done) {
  Writer writer = transition_writer(spec, 1, 12);
  Player player(spec, 5);
  Batch batch(spec, 64);
  int batches = 0;
  for (const auto end = soon(); !done() && Clock::now() < end; ++batches) {
    while (writer.pending_items() < 20)
      player.step(writer);
    REQUIRE(client.insert(writer.take(), soon()));
    REQUIRE(client.flush(soon()));
    REQUIRE_EQ(client.sample(64, batch.view(), 0, soon()), 64);
    for (std::size_t row = 0; row < batch.rows; ++row)
      player.check_row(batch, row);
  }
  CHECK_EQ(served.counters().garbage, 0);
  return batches;
}

TEST_CASE("Clients on the same host use shared memory, and a full segment changes no batch") {
  const TransitionSpec spec = pixel_spec(3, 3);
  for (const std::size_t bytes : {std::size_t{64} << 20, std::size_t{8192}}) {
    const env::wire::SharedMemory memory{.bytes_per_peer = bytes, .least_frame_bytes = 1};
    env::wire::Context context;
    ShardHost served(context, kFree, spec, 4, {.server = {.shared_memory = memory}});
    ShardClient client(context, served.endpoint(), spec, {.shared_memory = memory});
    play(served, client, spec, [&] { return served.counters().shared >= 100; });
    CHECK_GE(served.counters().shared, 100);
  }
}

// The client requests 8 items; half of them arrive in one call, the others in the next.
TEST_CASE("A batch that arrives more slowly than a call's deadline is completed by later calls") {
  const TransitionSpec spec = pixel_spec(1, 1);
  Source source(spec);
  const InsertionPtr made = source.next(8);
  const std::span<const Item> items = std::span(made->items).first(8);
  env::wire::Context context;
  env::wire::Socket server(context, env::wire::SocketType::router);
  const std::string endpoint = server.bind("tcp://127.0.0.1:*");
  ShardClient client(context, endpoint, spec, {.shared_memory = std::nullopt});
  Batch batch(spec, 8);
  CHECK_EQ(client.sample(8, batch.view(), 0, Clock::now()), std::nullopt);
  env::wire::Message asked;
  REQUIRE(server.wait(soon()));
  REQUIRE(server.try_receive(asked) == env::wire::Socket::Received::message);
  wire::Envelope head;
  REQUIRE(head.ParseFromString(asked.header));
  const auto send = [&](std::size_t first) {
    env::wire::Message part =
        encode_sample(RowLayout(spec), fingerprint(spec), head.sample().request(),
                      static_cast<std::int64_t>(first), items.subspan(first, 4),
                      [](std::size_t bytes) { return env::wire::Frame(bytes); });
    part.peer = asked.peer;
    REQUIRE(server.send(std::move(part), soon()));
  };
  send(0);
  client.wait(soon());
  CHECK_EQ(client.sample(8, batch.view(), 0, Clock::now()), std::nullopt);
  send(4);
  REQUIRE_EQ(client.sample(8, batch.view(), 0, soon()), 8);
  for (std::size_t row = 0; row < batch.rows; ++row)
    source.player.check_row(batch, row);
}

TEST_CASE("Keys on both sides encrypt a data port, and unauthenticated clients get no answer") {
  const TransitionSpec spec = pixel_spec(1, 1);
  const auto server_keys = env::wire::make_key_pair();
  const auto client_keys = env::wire::make_key_pair();
  env::wire::Context context;
  ShardHost served(
      context, kFree, spec, 4,
      {.server = {.keys = env::wire::ServerKeys{server_keys, {client_keys.public_key}}}});
  ShardClient stranger(context, served.endpoint(), spec);
  CHECK_THROWS_WITH_AS(stranger.stats(Clock::now() + seconds(1)),
                       doctest::Contains("does not answer"), std::runtime_error);
  CHECK_GE(served.counters().strangers, 1);
  ShardClient client(context, served.endpoint(), spec,
                     {.keys = env::wire::ClientKeys{client_keys, server_keys.public_key}});
  int left = 3;
  CHECK_EQ(play(served, client, spec, [&] { return left-- == 0; }), 3);
  CHECK_THROWS_WITH_AS(
      ShardHost(context, kFree, spec, 4, {.server = {.endpoint = "tcp://0.0.0.0:*"}}),
      doctest::Contains("troupe keys new"), std::invalid_argument);
}

TEST_CASE("A deployment's keys encrypt a data port off the loopback interface") {
  const TransitionSpec spec = pixel_spec(1, 1);
  const auto deployment = [] {
    return std::make_shared<env::wire::DeploymentKeys>(
        env::wire::DeploymentKeys{.own = env::wire::make_key_pair(), .retired = {}});
  };
  env::wire::Context context(1, deployment());
  ShardHost served(context, kFree, spec, 4, {.server = {.endpoint = "tcp://0.0.0.0:*"}});
  std::string endpoint = served.endpoint();
  endpoint.replace(endpoint.find("0.0.0.0"), 7, "127.0.0.1");
  env::wire::Context other(1, deployment());
  ShardClient stranger(other, endpoint, spec);
  CHECK_THROWS_WITH_AS(stranger.stats(Clock::now() + seconds(1)),
                       doctest::Contains("does not answer"), std::runtime_error);
  CHECK_GE(served.counters().strangers, 1);
  ShardClient client(context, endpoint, spec);
  // Clients on this host still get their samples through shared memory.
  play(served, client, spec, [&] { return served.counters().shared >= 10; });
  CHECK_GE(served.counters().shared, 10);
}

} // namespace
} // namespace troupe::replay
