#include <mutex>

#include <doctest/doctest.h>

#include "replay/remote.hpp"
#include "replay/shard.hpp"
#include "tests/replay/episodes.hpp"

namespace troupe::replay {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

Deadline soon() {
  return Clock::now() + seconds(20);
}

struct Served {
  Served(env::wire::Context& context, const TransitionSpec& spec, const ShardServerOptions& options)
      : shard({.max_items = 100000, .limiter = {.min_items = 1, .error_buffer = 1e6}}, spec, 4),
        server(context, spec, handlers(), options) {}

  ShardHandlers handlers() {
    ShardHandlers made;
    made.insert = [this](InsertionPtr insertion, std::function<void()> accepted) {
      shard.insert(std::move(insertion), std::move(accepted));
    };
    made.sample = [this](std::int64_t count, std::function<void(std::vector<Item>)> answer,
                         Patience patience) {
      shard.sample(count, std::move(answer), std::move(patience));
    };
    made.stats = [this](const std::function<void(TableStats)>& answer) {
      answer(shard.table().stats());
    };
    return made;
  }

  Shard shard; // on the server's thread only
  ShardServer server;
};

/// Writes and samples until `done`, checking every row; gives the number of batches.
template <typename Done>
int play(Served& served, ShardClient& client, const TransitionSpec& spec, Done done) {
  TransitionWriter writer(spec, 1, 12);
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
  CHECK_EQ(served.server.counters().garbage, 0);
  return batches;
}

TEST_CASE("clients of the same host share memory and a full one changes no batch") {
  const TransitionSpec spec = pixel_spec(3, 3);
  for (const std::size_t bytes : {std::size_t{64} << 20, std::size_t{8192}}) {
    const env::wire::SharedMemory memory{.bytes_per_peer = bytes, .least_frame_bytes = 1};
    env::wire::Context context;
    Served served(context, spec, {.shared_memory = memory});
    ShardClient client(context, served.server.endpoint(), spec, {.shared_memory = memory});
    play(served, client, spec, [&] { return served.server.counters().shared >= 100; });
    CHECK_GE(served.server.counters().shared, 100);
  }
}

TEST_CASE("keys on both sides encrypt a data port and strangers get nothing") {
  const TransitionSpec spec = pixel_spec(1, 1);
  const auto server_keys = env::wire::make_key_pair();
  const auto client_keys = env::wire::make_key_pair();
  env::wire::Context context;
  Served served(context, spec,
                {.keys = env::wire::ServerKeys{server_keys, {client_keys.public_key}}});
  ShardClient stranger(context, served.server.endpoint(), spec);
  CHECK_THROWS_WITH_AS(stranger.stats(Clock::now() + seconds(1)),
                       doctest::Contains("does not answer"), std::runtime_error);
  CHECK_GE(served.server.counters().strangers, 1);
  ShardClient client(context, served.server.endpoint(), spec,
                     {.keys = env::wire::ClientKeys{client_keys, server_keys.public_key}});
  int left = 3;
  CHECK_EQ(play(served, client, spec, [&] { return left-- == 0; }), 3);
  CHECK_THROWS_WITH_AS(Served(context, spec, {.endpoint = "tcp://0.0.0.0:*"}),
                       doctest::Contains("troupe keys new"), std::invalid_argument);
}

} // namespace
} // namespace troupe::replay
