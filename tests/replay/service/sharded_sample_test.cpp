#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <doctest/doctest.h>

#include "replay/service/hosted_shard.hpp"
#include "replay/service/shard_host.hpp"
#include "replay/service/sharded_client.hpp"
#include "tests/eventually.hpp"
#include "tests/replay/service/service_tests.hpp"
#include "tests/replay/writers/episodes.hpp"

namespace troupe::replay {
namespace {

using std::chrono::milliseconds;

/// A shard that answers questions for statistics only when the test says so.
struct SlowStatistics {
  explicit SlowStatistics(const TransitionSpec& spec)
      : shard(std::make_shared<HostedShard>(
          HostedTable{.config = kFree, .signature = spec, .seed = 1})),
        server(context, {ServedTable{.signature = spec, .handlers = handlers()}}) {}

  ShardHandlers handlers() {
    ShardHandlers made = handlers_of(shard);
    made.report = [this](std::function<void(ShardReport)> answer) {
      const std::scoped_lock lock(mutex);
      questions.push_back(std::move(answer));
    };
    return made;
  }
  bool asked() {
    const std::scoped_lock lock(mutex);
    return !questions.empty();
  }
  void answer_first() {
    const std::scoped_lock lock(mutex);
    questions.front()(shard->report());
  }

  std::mutex mutex;
  std::vector<std::function<void(ShardReport)>> questions;
  env::wire::Context context;
  std::shared_ptr<HostedShard> shard;
  ShardServer server; // declared last, because its thread uses the others
};

// do { sample until a short deadline } while the question is on its way; several more short
// samples; only the first question is answered; sample.
TEST_CASE("Statistics that arrive after several short deadlines still begin the batch") {
  const TransitionSpec spec = pixel_spec(1, 1);
  SlowStatistics slow(spec);
  Source source(spec);
  slow.shard->with_table([&](Table& table) { table.insert(*source.next(20)); });
  env::wire::Context context;
  ShardedClient client(context, spec, {{"shard", slow.server.endpoint()}});
  Batch batch(spec, 8);
  do
    REQUIRE_EQ(client.sample(8, batch.view(), 0, in(milliseconds(1))), std::nullopt);
  while (!slow.asked());
  for (int i = 0; i < 5; ++i)
    REQUIRE_EQ(client.sample(8, batch.view(), 0, in(milliseconds(1))), std::nullopt);
  slow.answer_first();
  REQUIRE_EQ(client.sample(8, batch.view(), 0, soon()), 8);
  for (std::size_t row = 0; row < 8; ++row)
    source.player.check_row(batch, row);
}

// A batch of one row; a late batch of 100 rows from both shards; a batch of one row from one of
// them.
TEST_CASE("A batch of another size withdraws the requests of the late one from all shards") {
  const TransitionSpec spec = pixel_spec(1, 1);
  TableConfig config = kFree;
  config.limiter = {.minimum_items = 1, .samples_per_insert = 4, .error_buffer = 16};
  env::wire::Context context;
  ShardHost first(context, config, spec, 1);
  ShardHost second(context, config, spec, 2);
  Source source(spec);
  for (ShardHost* host : {&first, &second})
    host->with_table([&](Table& table) { table.insert(*source.next(2)); });
  const auto waiting = [&] {
    return first.shard().report().waiting_samples + second.shard().report().waiting_samples;
  };
  ShardedClient client(context, spec, {{"first", first.endpoint()}, {"second", second.endpoint()}});
  Batch batch(spec, 100);
  REQUIRE_EQ(client.sample(1, batch.view(), 0, soon()), 1); // learns the statistics of both
  while (waiting() < 2)
    REQUIRE_EQ(client.sample(100, batch.view(), 0, in(milliseconds(1))), std::nullopt);
  REQUIRE_EQ(client.sample(1, batch.view(), 0, soon()), 1);
  CHECK(testing::comes_true([&] { return waiting() == 0; }));
  CHECK_EQ(first.stats().sampled + second.stats().sampled, 2);
}

} // namespace
} // namespace troupe::replay
