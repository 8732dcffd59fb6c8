#include "replay/service/shard_client.hpp"
#include "replay/service/shard_server.hpp"

#include <mutex>

#include <doctest/doctest.h>

#include "env/wire/socket.hpp"
#include "replay/service/shard_host.hpp"
#include "tests/replay/service/service_tests.hpp"
#include "tests/replay/writers/episodes.hpp"

namespace troupe::replay {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

ShardHostOptions at(const std::string& endpoint) {
  return {.server = {.endpoint = endpoint}};
}

TEST_CASE("Items that one client inserts are sampled by another bit for bit") {
  const TransitionSpec spec = pixel_spec(3, 3);
  env::wire::Context context;
  ShardHost served(context, kFree, spec, 4);
  ShardClient writer(context, served.endpoint(), spec);
  ShardClient reader(context, served.endpoint(), spec);
  Source source(spec);
  std::int64_t items = 0;
  for (int i = 0; i < 200; ++i) {
    const InsertionPtr made = source.next(1 + i % 20);
    items += std::ssize(made->items);
    REQUIRE(writer.insert(made, in(seconds(20))));
  }
  REQUIRE(writer.flush(in(seconds(20))));
  CHECK_EQ(writer.in_flight(), 0);
  const TableStats stats = reader.stats(in(seconds(20)));
  CHECK_EQ(stats.inserted, items);
  CHECK_EQ(stats.items, items);
  Batch batch(spec, 100);
  REQUIRE_EQ(reader.sample(64, batch.view(), 36, in(seconds(20))), 64);
  for (std::size_t row = 36; row < 100; ++row)
    source.player.check_row(batch, row);
  CHECK_EQ(served.counters().garbage, 0);
}

TEST_CASE("A sample that the limiter holds past its deadline is delivered by the next call") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  ShardHost served(context, {.limiter = {.minimum_items = 5}}, spec, 4);
  ShardClient client(context, served.endpoint(), spec, {.ping_interval = milliseconds(20)});
  Batch batch(spec, 8);
  CHECK_EQ(client.sample(8, batch.view(), 0, in(milliseconds(100))), std::nullopt);
  Source source(spec);
  REQUIRE(client.insert(source.next(5), in(seconds(20))));
  REQUIRE_EQ(client.sample(8, batch.view(), 0, in(seconds(20))), 8);
  CHECK_EQ(client.stats(in(seconds(20))).sampled, 8);
}

TEST_CASE("Priorities are transmitted with items, with samples and back to the shard") {
  const TransitionSpec spec = pixel_spec(2, 2);
  env::wire::Context context;
  ShardHost served(context,
                   {.sampler = {.kind = SelectorKind::prioritized},
                    .limiter = {.kind = RateLimiterKind::minimum_size}},
                   spec, 4);
  ShardClient client(context, served.endpoint(), spec);
  Source source(spec);
  Insertion made = *source.next(20);
  for (Item& item : made.items)
    item.priority = 0;
  made.items[3].priority = 2.5;
  REQUIRE(client.insert(std::make_shared<Insertion>(made), in(seconds(20))));
  REQUIRE(client.flush(in(seconds(20))));
  Batch batch(spec, 8);
  std::vector<double> priority(8), probability(8);
  std::vector<std::uint32_t> times(8), items(8);
  BatchView view = batch.view();
  view.priority = priority;
  view.probability = probability;
  view.times_sampled = times;
  view.table_items = items;
  REQUIRE_EQ(client.sample(8, view, 0, in(seconds(20))), 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK_EQ(batch.key[i], 3);
    CHECK_EQ(priority[i], 2.5);
    CHECK_EQ(probability[i], 1);
    CHECK_EQ(times[i], i + 1);
    CHECK_EQ(items[i], made.items.size());
  }
  const std::uint64_t keys[] = {3, 7, 123456};
  const double values[] = {0, 0.125, 1};
  client.update_priorities(keys, values, in(seconds(20)));
  REQUIRE_EQ(client.sample(8, view, 0, in(seconds(20))), 8);
  CHECK_EQ(batch.key[0], 7);
  CHECK_EQ(priority[0], 0.125);
  const TableStats stats = client.stats(in(seconds(20)));
  CHECK_EQ(stats.updated_priorities, 2);
  CHECK_EQ(stats.late_priorities, 1);
  const double bad[] = {0, -3, 1};
  CHECK_THROWS_WITH_AS(client.update_priorities(keys, bad, in(seconds(20))),
                       doctest::Contains("one of 0 to 1e12 for each"), std::runtime_error);
  CHECK_THROWS_AS(client.update_priorities(keys, std::span(bad).first(2), in(seconds(20))),
                  std::invalid_argument);
}

TEST_CASE("One call accepts as many priorities as a sample may have items") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  ShardHost served(
      context, {.sampler = {.kind = SelectorKind::prioritized}, .limiter = {.minimum_items = 1}},
      spec, 4);
  ShardClient client(context, served.endpoint(), spec);
  for (const std::size_t count : {60'000UL, 65'536UL}) {
    const std::vector<std::uint64_t> keys(count, std::uint64_t{1} << 60);
    const std::vector<double> values(count, 0.3);
    client.update_priorities(keys, values, in(seconds(20)));
  }
  CHECK_EQ(client.stats(in(seconds(20))).late_priorities, 60'000 + 65'536);
  // More are refused with a message, even where they do not fit into one frame.
  for (const std::size_t count : {65'537UL, 300'000UL}) {
    const std::vector<std::uint64_t> keys(count, 1);
    const std::vector<double> values(count, 1);
    CHECK_THROWS_WITH_AS(client.update_priorities(keys, values, in(seconds(20))),
                         doctest::Contains(count == 65'537 ? "at most 65536" : "send less at once"),
                         std::runtime_error);
  }
}

TEST_CASE("A client changes the limiter of a running shard, and an invalid limiter is refused with "
          "the reason") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  ShardHost served(context, {.limiter = {.minimum_items = 1000}}, spec, 4);
  ShardClient client(context, served.endpoint(), spec, {.ping_interval = seconds(20)});
  Source source(spec);
  REQUIRE(client.insert(source.next(5), in(seconds(20))));
  Batch batch(spec, 4);
  CHECK_EQ(client.sample(4, batch.view(), 0, in(milliseconds(60))), std::nullopt);
  CHECK_THROWS_WITH_AS(client.set_limiter({.minimum_items = -4}, in(seconds(20))),
                       doctest::Contains("replay.minimum_items is -4"), std::runtime_error);
  client.set_limiter({.minimum_items = 2}, in(seconds(20)));
  CHECK_EQ(client.sample(4, batch.view(), 0, in(seconds(20))), 4);
}

TEST_CASE("A sample whose patience expires is refused with the waiting requests and their reason") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  ShardHost served(context, {.limiter = {.minimum_items = 1000}}, spec, 4);
  ShardClient client(context, served.endpoint(), spec, {.ping_interval = seconds(20)});
  Batch batch(spec, 4);
  CHECK_THROWS_WITH_AS(
      client.sample(4, batch.view(), 0, in(seconds(20)), milliseconds(5)),
      doctest::Contains("the deadline passed; 1 samples of 4 wait (a remote "
                        "client): samples wait for inserts: 0 of minimum_items 1000"),
      std::runtime_error);
}

TEST_CASE("A full window blocks insertions") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  std::vector<std::function<void()>> kept; // answers that are held back forever
  ShardHandlers handlers;
  handlers.insert = [&](const InsertionPtr&, std::function<void()> accepted) {
    kept.push_back(std::move(accepted));
  };
  ShardServer server(context, {ServedTable{.signature = spec, .handlers = handlers}});
  ShardClient client(context, server.endpoint(), spec, {.window = 3, .ping_interval = seconds(20)});
  Source source(spec);
  for (int i = 0; i < 3; ++i)
    REQUIRE(client.insert(source.next(1), in(seconds(20))));
  CHECK_FALSE(client.insert(source.next(1), in(milliseconds(100))));
  CHECK_FALSE(client.flush(in(milliseconds(100))));
  CHECK_EQ(client.in_flight(), 3);

  // A table drops an insertion that is 64 sequence numbers late as a duplicate, so the client must
  // not send that far ahead of an unanswered one.
  ShardClient wide(context, server.endpoint(), spec, {.ping_interval = seconds(20)});
  Insertion made = *source.next(1);
  const auto insert = [&](std::uint64_t writer, std::uint64_t sequence) {
    made.writer_id = writer;
    made.sequence = sequence;
    return wide.insert(std::make_shared<Insertion>(made), in(milliseconds(30)));
  };
  CHECK(insert(8, 1));
  CHECK(insert(8, 64));
  CHECK_FALSE(insert(8, 65));
  CHECK(insert(9, 65)); // writers are counted separately
  CHECK(insert(7, 1000));
}

TEST_CASE("An insertion that the owner does not accept is sent again") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  Table table(kFree, spec, 1);
  int calls = 0;
  std::mutex mutex; // the sanitizer does not know that an answer over a socket orders the threads
  ShardHandlers handlers;
  handlers.insert = [&](const InsertionPtr& insertion, const std::function<void()>& accepted) {
    const std::scoped_lock lock(mutex);
    if (++calls % 3 == 0) {
      table.insert(*insertion);
      accepted();
    }
  };
  ShardServer server(context, {ServedTable{.signature = spec, .handlers = handlers}});
  ShardClient client(context, server.endpoint(), spec, {.ping_interval = milliseconds(5)});
  Source source(spec);
  for (int i = 0; i < 10; ++i)
    REQUIRE(client.insert(source.next(1), in(seconds(20))));
  REQUIRE(client.flush(in(seconds(20))));
  const std::scoped_lock lock(mutex);
  CHECK_EQ(table.stats().dropped_duplicates, 0);
  CHECK_GE(calls, 30);
}

TEST_CASE("A restarted server gets the insertions that it had not accepted exactly once") {
  const TransitionSpec spec = pixel_spec(3, 3);
  env::wire::Context context;
  // A separate context stands for another process: destroying it frees the port.
  auto there = std::make_unique<env::wire::Context>();
  auto served = std::make_unique<ShardHost>(*there, kFree, spec, 4);
  const std::string endpoint = served->endpoint();
  ShardClient client(context, endpoint, spec, {.ping_interval = milliseconds(20)});
  Source source(spec);
  for (int i = 0; i < 30; ++i)
    REQUIRE(client.insert(source.next(2), in(seconds(20))));
  REQUIRE(client.flush(in(seconds(20))));
  served.reset();
  there = std::make_unique<env::wire::Context>();
  std::int64_t items = 0;
  for (int i = 0; i < 20; ++i) {
    const InsertionPtr made = source.next(2);
    items += std::ssize(made->items);
    REQUIRE(client.insert(made, in(seconds(20))));
  }
  CHECK_GT(client.in_flight(), 0);
  served = std::make_unique<ShardHost>(*there, kFree, spec, 4, at(endpoint));
  REQUIRE(client.flush(in(seconds(30))));
  const TableStats stats = client.stats(in(seconds(20)));
  CHECK_EQ(stats.inserted, items);
  Batch batch(spec, 64);
  REQUIRE_EQ(client.sample(64, batch.view(), 0, in(seconds(20))), 64);
  for (std::size_t row = 0; row < 64; ++row)
    source.player.check_row(batch, row);
}

TEST_CASE("A client that moves to another endpoint resends its insertions in flight exactly once") {
  const TransitionSpec spec = pixel_spec(3, 3);
  env::wire::Context context;
  ShardHost second(context, kFree, spec, 4);
  auto first = std::make_unique<ShardHost>(context, kFree, spec, 4);
  ShardClient client(context, first->endpoint(), spec, {.ping_interval = milliseconds(20)});
  Source source(spec);
  REQUIRE(client.insert(source.next(2), in(seconds(20))));
  REQUIRE(client.flush(in(seconds(20))));
  first.reset();
  std::int64_t items = 0;
  for (int i = 0; i < 20; ++i) {
    const InsertionPtr made = source.next(2);
    items += std::ssize(made->items);
    REQUIRE(client.insert(made, in(seconds(20))));
  }
  CHECK_EQ(client.in_flight(), 20);
  client.move(second.endpoint());
  REQUIRE(client.flush(in(seconds(30))));
  CHECK_EQ(client.stats(in(seconds(20))).inserted, items);
  Batch batch(spec, 64);
  REQUIRE_EQ(client.sample(64, batch.view(), 0, in(seconds(20))), 64);
  for (std::size_t row = 0; row < 64; ++row)
    source.player.check_row(batch, row);
}

TEST_CASE("A sample requested from a stopped server is answered by its successor") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  // A separate context stands for another process: destroying it frees the port.
  auto there = std::make_unique<env::wire::Context>();
  constexpr TableConfig kConfig{.limiter = {.minimum_items = 1}};
  auto served = std::make_unique<ShardHost>(*there, kConfig, spec, 4);
  const std::string endpoint = served->endpoint();
  ShardClient client(context, endpoint, spec, {.ping_interval = milliseconds(20)});
  Batch batch(spec, 4);
  CHECK_EQ(client.sample(4, batch.view(), 0, in(milliseconds(100))), std::nullopt);
  served.reset();
  there = std::make_unique<env::wire::Context>();
  served = std::make_unique<ShardHost>(*there, kConfig, spec, 4, at(endpoint));
  Source source(spec);
  ShardClient other(context, endpoint, spec);
  REQUIRE(other.insert(source.next(3), in(seconds(20))));
  CHECK_EQ(client.sample(4, batch.view(), 0, in(seconds(30))), 4);
}

TEST_CASE("An absent server is named after the deadline") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  std::string endpoint;
  {
    env::wire::Socket probe(context, env::wire::SocketType::router);
    endpoint = probe.bind("tcp://127.0.0.1:*");
  }
  ShardClient client(context, endpoint, spec,
                     {.ping_interval = milliseconds(10), .silence = milliseconds(60)});
  Batch batch(spec, 4);
  const auto named = doctest::Contains(endpoint.c_str());
  CHECK_THROWS_WITH_AS(client.sample(4, batch.view(), 0, in(milliseconds(50))), named,
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(client.stats(in(milliseconds(50))), named, std::runtime_error);
  Source source(spec);
  REQUIRE(client.insert(source.next(1), in(milliseconds(50))));
  CHECK_THROWS_WITH_AS(client.flush(in(milliseconds(50))), named, std::runtime_error);
}

TEST_CASE("A client of another experiment is refused with an explanation") {
  env::wire::Context context;
  ShardHost served(context, kFree, pixel_spec(3, 3), 4);
  ShardClient client(context, served.endpoint(), pixel_spec(3, 4));
  Batch batch(pixel_spec(3, 4), 4);
  CHECK_THROWS_WITH_AS(client.sample(4, batch.view(), 0, in(seconds(20))),
                       doctest::Contains("n_step 3"), std::runtime_error);
}

TEST_CASE("Garbage is counted and logged once, and the server continues") {
  const TransitionSpec spec = pixel_spec(1, 1);
  env::wire::Context context;
  std::vector<std::string> log;
  std::mutex mutex;
  ShardHost served(context, kFree, spec, 4, {.log = [&](const std::string& text) {
                     const std::scoped_lock lock(mutex);
                     log.push_back(text);
                   }});
  env::wire::Socket stranger(context, env::wire::SocketType::dealer);
  stranger.connect(served.endpoint());
  std::mt19937_64 random(3);
  constexpr int kMessages = 300;
  for (int i = 0; i < kMessages; ++i) {
    env::wire::Message message;
    message.header.resize(random() % 40);
    for (char& c : message.header)
      c = static_cast<char>(random());
    for (std::uint64_t k = random() % 3; k > 0; --k)
      message.frames.emplace_back(static_cast<std::size_t>(random() % 100));
    REQUIRE(stranger.send(std::move(message), in(seconds(5))));
  }
  // When each message has been answered, the stranger's last one has arrived.
  for (int answers = 0; answers < kMessages;) {
    REQUIRE(stranger.wait(in(seconds(20))));
    env::wire::Message answer;
    while (stranger.try_receive(answer) != env::wire::Socket::Received::nothing)
      ++answers;
  }
  CHECK_EQ(served.counters().garbage, kMessages);
  ShardClient client(context, served.endpoint(), spec);
  Source source(spec);
  REQUIRE(client.insert(source.next(3), in(seconds(20))));
  CHECK(client.flush(in(seconds(20))));
  const std::scoped_lock lock(mutex);
  CHECK_LE(log.size(), 3);
  CHECK_GE(log.size(), 1);
}

} // namespace
} // namespace troupe::replay
