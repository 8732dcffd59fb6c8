#include "replay/service/sharded_client.hpp"

#include <cmath>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "replay/service/rendezvous.hpp"
#include "replay/service/shard_host.hpp"
#include "replay/table/importance.hpp"
#include "tests/replay/service/service_tests.hpp"
#include "tests/replay/table/set_priority.hpp"
#include "tests/replay/writers/episodes.hpp"

namespace troupe::replay {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

const TableConfig kPrioritized{.max_items = 100000,
                               .sampler = {.kind = SelectorKind::prioritized, .exponent = 0.7},
                               .limiter = {.kind = RateLimiterKind::minimum_size}};

/// Shards in this process. Each has a separate context, so that stopping it frees its port, as the
/// end of a process would.
struct Hosts {
  Hosts(const TransitionSpec& s, std::vector<TableConfig> c) : spec(s), configs(std::move(c)) {
    hosts.resize(configs.size());
    contexts.resize(configs.size());
    for (std::size_t i = 0; i < configs.size(); ++i) {
      start(i, "tcp://127.0.0.1:*");
      addresses.push_back({"shard-" + std::to_string(i), hosts[i]->endpoint()});
    }
  }
  void start(std::size_t i, const std::string& endpoint) {
    contexts[i] = std::make_unique<env::wire::Context>();
    hosts[i] = std::make_unique<ShardHost>(*contexts[i], configs[i], spec, 4 + i,
                                           ShardHostOptions{.server = {.endpoint = endpoint}});
  }
  void stop(std::size_t i) {
    hosts[i].reset();
    contexts[i].reset();
  }
  void restart(std::size_t i) { start(i, addresses[i].endpoint); }
  std::int64_t items() const {
    std::int64_t sum = 0;
    for (const auto& host : hosts)
      sum += host->stats().items;
    return sum;
  }

  TransitionSpec spec;
  std::vector<TableConfig> configs;
  std::vector<std::unique_ptr<env::wire::Context>> contexts;
  std::vector<std::unique_ptr<ShardHost>> hosts;
  std::vector<ShardAddress> addresses;
};

const ShardedClientOptions kQuick{
    .client = {.ping_interval = milliseconds(20), .silence = milliseconds(200)}};

/// A batch with all optional columns about the choice of its rows.
struct FullBatch : Batch {
  FullBatch(const TransitionSpec& spec, std::int64_t count)
      : Batch(spec, count), priority(rows), probability(rows), items(rows) {}
  BatchView view() {
    BatchView made = Batch::view();
    made.priority = priority;
    made.probability = probability;
    made.table_items = items;
    return made;
  }
  std::vector<double> priority, probability;
  std::vector<std::uint32_t> items;
};

TEST_CASE(
    "Each episode goes to one shard as a whole, and batches have rows of all shards bit for bit") {
  const TransitionSpec spec = pixel_spec(3, 3);
  Hosts hosts(spec, {kFree, kFree, kFree});
  env::wire::Context context;
  ShardedClient client(context, spec, hosts.addresses, kQuick);
  Source source(spec);
  std::int64_t items = 0;
  for (int i = 0; i < 1500; ++i) {
    const InsertionPtr made = source.next(1);
    items += std::ssize(made->items);
    REQUIRE(client.insert(made, in(seconds(20))));
  }
  REQUIRE(client.flush(in(seconds(20))));
  CHECK_EQ(hosts.items(), items);
  for (const auto& host : hosts.hosts)
    CHECK_GT(host->stats().items, items / 5);
  Batch batch(spec, 96);
  std::map<std::int64_t, std::set<std::uint64_t>> shards_of; // by episode
  for (int i = 0; i < 50; ++i) {
    REQUIRE_EQ(client.sample(96, batch.view(), 0, in(seconds(20))), 96);
    for (std::size_t row = 0; row < 96; ++row)
      shards_of[source.player.check_row(batch, row).first].insert(batch.key[row] >> 48U);
  }
  for (const auto& [episode, shards] : shards_of)
    CHECK_EQ(shards.size(), 1);
}

TEST_CASE("Priority updates reach the shard that a row came from") {
  const TransitionSpec spec = pixel_spec(1, 1);
  Hosts hosts(spec, {kPrioritized, kPrioritized});
  env::wire::Context context;
  ShardedClientOptions options = kQuick;
  options.statistics_every = 1;
  ShardedClient client(context, spec, hosts.addresses, options);
  Source source(spec);
  for (int i = 0; i < 100; ++i)
    REQUIRE(client.insert(source.next(1), in(seconds(20))));
  REQUIRE(client.flush(in(seconds(20))));
  FullBatch batch(spec, 64);
  REQUIRE_EQ(client.sample(64, batch.view(), 0, in(seconds(20))), 64);
  const std::set<std::uint64_t> keys(batch.key.begin(), batch.key.end());
  // The items in even rows get different priorities, all others 0, so that nothing else can be
  // sampled.
  std::map<std::uint64_t, double> given;
  for (std::size_t row = 0; row < 64; row += 2)
    given[batch.key[row]] = 1 + static_cast<double>(row);
  for (std::size_t s = 0; s < 2; ++s)
    hosts.hosts[s]->with_table([](Table& table) {
      for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(table.stats().items); ++key)
        set_priority(table, key, 0);
    });
  std::vector<std::uint64_t> updated;
  std::vector<double> values;
  for (const auto& [key, priority] : given) {
    updated.push_back(key);
    values.push_back(priority);
  }
  updated.push_back(std::uint64_t{77} << 48U); // of a shard that does not exist
  values.push_back(1);
  client.update_priorities(updated, values, in(seconds(20)));
  CHECK_EQ(client.counters().lost_priorities, 1);
  for (int i = 0; i < 20; ++i) {
    REQUIRE_EQ(client.sample(64, batch.view(), 0, in(seconds(20))), 64);
    for (std::size_t row = 0; row < 64; ++row) {
      REQUIRE(given.contains(batch.key[row]));
      CHECK_EQ(batch.priority[row], given.at(batch.key[row]));
    }
  }
}

// Compares the mean of the rewards over all items with the mean over weighted batches from three
// shards of very different sizes and priorities.
TEST_CASE("Weights of sharded batches, computed as for one table, are unbiased") {
  const TransitionSpec spec = pixel_spec(1, 1);
  Hosts hosts(spec, {kPrioritized, kPrioritized, kPrioritized});
  env::wire::Context context;
  std::mt19937_64 random(7);
  const int sizes[] = {5, 200, 31};
  double truth = 0;
  std::int64_t items = 0;
  for (std::size_t s = 0; s < 3; ++s) {
    ShardClient writer(context, hosts.addresses[s].endpoint, spec);
    Writer steps = transition_writer(spec, 10 + s);
    const std::vector<float> action(3);
    std::vector<float> rewards;
    begin_episode(steps);
    for (int i = 0; i < sizes[s]; ++i) {
      const auto reward = static_cast<float>(random() % 1000) + 1000.0F * static_cast<float>(s);
      append_step(steps, action, reward, 1, false);
      rewards.push_back(reward);
      truth += static_cast<double>(reward);
      ++items;
    }
    Insertion made = *steps.take();
    REQUIRE_EQ(std::ssize(made.items), sizes[s]);
    for (std::size_t i = 0; i < made.items.size(); ++i) // the larger the reward, the likelier
      made.items[i].priority = 1 + static_cast<double>(rewards[i]) / 50;
    REQUIRE(writer.insert(std::make_shared<Insertion>(made), in(seconds(20))));
    REQUIRE(writer.flush(in(seconds(20))));
  }
  truth /= static_cast<double>(items);
  ShardedClient client(context, spec, hosts.addresses, kQuick);
  FullBatch batch(spec, 64);
  std::vector<float> weight(64);
  constexpr int kBatches = 1500;
  double sum = 0;
  double squares = 0;
  double plain = 0;
  for (int i = 0; i < kBatches; ++i) {
    REQUIRE_EQ(client.sample(64, batch.view(), 0, in(seconds(20))), 64);
    REQUIRE_EQ(batch.items[i % 64], items);
    const ShardRows part{.rows = 64, .table_items = batch.items[0]};
    importance_weights(batch.probability, {&part, 1}, 1, weight);
    double mean = 0;
    for (std::size_t row = 0; row < 64; ++row) {
      mean += static_cast<double>(weight[row]) * static_cast<double>(batch.reward[row]) / 64;
      plain += static_cast<double>(batch.reward[row]) / 64 / kBatches;
    }
    sum += mean / kBatches;
    squares += mean * mean / kBatches;
  }
  const double error = std::sqrt((squares - sum * sum) / kBatches);
  CHECK_LT(std::abs(sum - truth), 5 * error);
  CHECK_LT(error, 0.01 * truth);
  CHECK_GT(std::abs(plain - truth), 20 * error); // without weights the bias is visible
}

TEST_CASE("The order of samples depends on the seed and not on concurrent activity") {
  const TransitionSpec spec = pixel_spec(1, 1);
  std::vector<std::uint64_t> first;
  for (int run = 0; run < 2; ++run) {
    Hosts hosts(spec, {kFree, kFree, kFree});
    env::wire::Context context;
    ShardedClient client(context, spec, hosts.addresses, kQuick);
    Source source(spec);
    for (int i = 0; i < 300; ++i)
      REQUIRE(client.insert(source.next(1), in(seconds(20))));
    REQUIRE(client.flush(in(seconds(20))));
    std::vector<std::uint64_t> keys;
    Batch batch(spec, 48);
    for (int i = 0; i < 40; ++i) {
      REQUIRE_EQ(client.sample(48, batch.view(), 0, in(seconds(20))), 48);
      keys.insert(keys.end(), batch.key.begin(), batch.key.end());
      if (run == 1)
        hosts.hosts[static_cast<std::size_t>(i) % 3]->with_table([](Table&) {}); // others ask, too
    }
    if (run == 0)
      first = keys;
    else
      CHECK_EQ(keys, first);
  }
}

TEST_CASE("A stopped shard is left out and gets its unaccepted insertions when it returns") {
  const TransitionSpec spec = pixel_spec(2, 2);
  Hosts hosts(spec, {kFree, kFree});
  env::wire::Context context;
  std::vector<std::string> log;
  ShardedClientOptions options = kQuick;
  options.log = [&](const std::string& text) { log.push_back(text); };
  ShardedClient client(context, spec, hosts.addresses, options);
  Source source(spec);
  const auto play = [&](int insertions) {
    for (int i = 0; i < insertions; ++i)
      REQUIRE(client.insert(source.next(1), in(seconds(20))));
  };
  play(200);
  REQUIRE(client.flush(in(seconds(20))));
  const std::int64_t kept = hosts.hosts[1]->stats().items;
  hosts.stop(0);
  Batch batch(spec, 32);
  play(150); // some go to the stopped shard and stay in its window
  for (int i = 0; i < 20; ++i) {
    REQUIRE_EQ(client.sample(32, batch.view(), 0, in(seconds(20))), 32);
    for (std::size_t row = 0; row < 32; ++row)
      source.player.check_row(batch, row);
  }
  CHECK_EQ(client.counters().left, 1);
  REQUIRE_EQ(log.size(), 1);
  CHECK_NE(log[0].find("shard-0 at " + hosts.addresses[0].endpoint + " is left out"),
           std::string::npos);
  const std::size_t held = client.shards()[0].in_flight;
  CHECK_GT(held, 0);
  play(150); // all go to the living shard
  CHECK_EQ(client.shards()[0].in_flight, held);
  CHECK_FALSE(client.flush(in(milliseconds(50))));
  hosts.restart(0);
  REQUIRE(client.flush(in(seconds(20))));
  while (!client.shards()[0].lives)
    client.poll();
  CHECK_EQ(client.counters().rejoined, 1);
  CHECK_EQ(log.size(), 2);
  CHECK_EQ(hosts.hosts[0]->stats().dropped_duplicates, 0);
  CHECK_EQ(hosts.hosts[1]->stats().dropped_duplicates, 0);
  CHECK_GT(hosts.hosts[1]->stats().items, kept + 150);
  const std::int64_t before = hosts.hosts[0]->stats().items;
  CHECK_GE(before, static_cast<std::int64_t>(held));
  play(150); // and the restarted shard gets new ones
  REQUIRE(client.flush(in(seconds(20))));
  CHECK_GT(hosts.hosts[0]->stats().items, before);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 40; ++i) {
    REQUIRE_EQ(client.sample(32, batch.view(), 0, in(seconds(20))), 32);
    for (std::size_t row = 0; row < 32; ++row) {
      source.player.check_row(batch, row);
      seen.insert(batch.key[row] >> 48U);
    }
  }
  CHECK_EQ(seen, std::set<std::uint64_t>{2, 3}); // the restarted shard has a new number
}

TEST_CASE("Shards are added and removed while episodes are written and batches are sampled") {
  const TransitionSpec spec = pixel_spec(1, 1);
  Hosts hosts(spec, {kFree, kFree, kFree});
  env::wire::Context context;
  ShardedClient client(context, spec, {hosts.addresses[0], hosts.addresses[1]}, kQuick);
  Source source(spec);
  Batch batch(spec, 16);
  const auto play = [&] {
    for (int i = 0; i < 300; ++i) {
      REQUIRE(client.insert(source.next(1), in(seconds(20))));
      REQUIRE_EQ(client.sample(16, batch.view(), 0, in(seconds(20))), 16);
      source.player.check_row(batch, static_cast<std::size_t>(i) % 16);
    }
    REQUIRE(client.flush(in(seconds(20))));
  };
  play();
  CHECK_EQ(hosts.hosts[2]->stats().items, 0);
  client.add(hosts.addresses[2]);
  play();
  CHECK_GT(hosts.hosts[2]->stats().items, 30);
  client.remove("shard-0");
  const std::int64_t left = hosts.hosts[0]->stats().items;
  play();
  CHECK_EQ(hosts.hosts[0]->stats().items, left);
  CHECK_EQ(client.counters().lost_insertions, 0);
  // If its shard never comes back, a window is lost when the shard is removed.
  hosts.stop(1);
  for (int i = 0; i < 200; ++i)
    REQUIRE(client.insert(source.next(1), in(seconds(20))));
  const auto lost = static_cast<std::int64_t>(client.shards()[0].in_flight);
  CHECK_GT(lost, 0);
  client.remove("shard-1");
  CHECK_EQ(client.counters().lost_insertions, lost);
  play();
  CHECK_THROWS_WITH_AS(client.remove("shard-1"), doctest::Contains("shard-1"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(client.add(hosts.addresses[2]), doctest::Contains("exists already"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(client.add({"", "tcp://127.0.0.1:1"}), doctest::Contains("needs a name"),
                       std::invalid_argument);
}

TEST_CASE("An episode whose shard is blocked by its limiter continues on the next shard") {
  const TransitionSpec spec = pixel_spec(1, 1);
  TableConfig full = kFree;
  full.limiter = {.minimum_items = 1, .samples_per_insert = 1, .error_buffer = 3};
  Hosts hosts(spec, {full, kFree});
  env::wire::Context context;
  ShardedClientOptions options = kQuick;
  options.client.window = 2;
  options.patience = milliseconds(10);
  ShardedClient client(context, spec, hosts.addresses, options);
  Source source(spec);
  for (int i = 0; i < 60; ++i)
    REQUIRE(client.insert(source.next(1), in(seconds(20))));
  CHECK_EQ(client.shards()[0].in_flight, 2);
  CHECK_GT(hosts.hosts[1]->stats().items, 40);
  CHECK_GT(client.counters().spilled, 0);
  CHECK_EQ(client.counters().left, 0);
}

TEST_CASE(
    "Calls name an unreachable shard while all shards are down, and succeed after a restart") {
  const TransitionSpec spec = pixel_spec(1, 1);
  Hosts hosts(spec, {kFree, kFree});
  hosts.stop(0);
  hosts.stop(1);
  env::wire::Context context;
  ShardedClient client(context, spec, hosts.addresses, kQuick);
  Batch batch(spec, 4);
  const auto named = doctest::Contains(
      ("shard-1 at " + hosts.addresses[1].endpoint + " (it does not answer)").c_str());
  CHECK_THROWS_WITH_AS(client.sample(4, batch.view(), 0, in(milliseconds(600))), named,
                       std::runtime_error);
  Source source(spec);
  const InsertionPtr made = source.next(5);
  CHECK_THROWS_WITH_AS(client.insert(made, in(milliseconds(20))), named, std::runtime_error);
  hosts.restart(0);
  hosts.restart(1);
  REQUIRE(client.insert(made, in(seconds(20))));
  REQUIRE_EQ(client.sample(4, batch.view(), 0, in(seconds(20))), 4);
  for (std::size_t row = 0; row < 4; ++row)
    source.player.check_row(batch, row);
}

TEST_CASE("An insertion that ends an episode goes to its shard, also if the call is repeated") {
  const TransitionSpec spec = state_spec(1);
  Hosts hosts(spec, {kFree, kFree});
  env::wire::Context context;
  ShardedClient client(context, spec, hosts.addresses, kQuick);
  const auto insert = [&](const InsertionPtr& made) { // returns whether shard 0 got it
    const std::int64_t before = hosts.hosts[0]->stats().items;
    REQUIRE(client.insert(made, in(seconds(20))));
    REQUIRE(client.flush(in(seconds(20))));
    return hosts.hosts[0]->stats().items > before;
  };
  const auto living = [&] { return client.shards()[0].lives + client.shards()[1].lives; };
  const std::vector<float> action(static_cast<std::size_t>(spec.action_size));
  std::vector<bool> homes;
  std::vector<InsertionPtr> last;
  for (std::uint64_t id = 1; id <= 12; ++id) {
    Writer writer = transition_writer(spec, id, 12);
    begin_episode(writer);
    append_step(writer, action, 0, 1, false);
    homes.push_back(insert(writer.take()));
    append_step(writer, action, 0, 1, true);
    begin_episode(writer);
    last.push_back(writer.take());
  }
  hosts.stop(0);
  hosts.stop(1);
  Batch batch(spec, 1);
  while (living() > 0) // it notices only while it waits for an answer
    try {
      client.sample(1, batch.view(), 0, in(milliseconds(300)));
    } catch (const std::runtime_error&) { // no shard answers
    }
  for (const InsertionPtr& made : last)
    CHECK_THROWS_AS(client.insert(made, in(milliseconds(1))), std::runtime_error);
  hosts.restart(0);
  hosts.restart(1);
  while (living() < 2)
    client.poll();
  for (std::size_t i = 0; i < last.size(); ++i)
    CHECK_EQ(insert(last[i]), homes[i]);
}

TEST_CASE("A late batch is continued by the next call without repeating its requests") {
  const TransitionSpec spec = pixel_spec(1, 1);
  TableConfig slow = kFree;
  slow.limiter = {.minimum_items = 1, .samples_per_insert = 4, .error_buffer = 16};
  Hosts hosts(spec, {slow, slow});
  env::wire::Context context;
  ShardedClient client(context, spec, hosts.addresses, kQuick);
  Source source(spec);
  const auto play = [&](int insertions) {
    for (int i = 0; i < insertions; ++i)
      REQUIRE(client.insert(source.next(1), in(seconds(20))));
    REQUIRE(client.flush(in(seconds(20))));
  };
  play(3); // few enough for either shard's window
  Batch batch(spec, 100);
  Batch other(spec, 100);
  for (int i = 0; i < 5; ++i)
    CHECK_EQ(client.sample(100, (i % 2 == 0 ? batch : other).view(), 0, in(milliseconds(20))),
             std::nullopt);
  for (std::size_t s = 0; s < 2; ++s)
    hosts.hosts[s]->shard().set_limiter({.kind = RateLimiterKind::minimum_size});
  REQUIRE_EQ(client.sample(100, batch.view(), 0, in(seconds(20))), 100);
  for (std::size_t row = 0; row < 100; ++row)
    source.player.check_row(batch, row);
  CHECK_EQ(hosts.hosts[0]->stats().sampled + hosts.hosts[1]->stats().sampled, 100);
}

} // namespace
} // namespace troupe::replay
