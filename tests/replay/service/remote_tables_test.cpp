#include <doctest/doctest.h>

#include "env/wire/socket.hpp"
#include "replay/batch/batch.hpp"
#include "replay/batch/column_batch.hpp"
#include "replay/chunks/insertion_split.hpp"
#include "replay/service/shard_client.hpp"
#include "replay/service/shard_host.hpp"
#include "tests/replay/service/service_tests.hpp"
#include "tests/replay/windows.hpp"

namespace troupe::replay {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TableConfig kMinimumSize{
    .max_items = 100000, .limiter = {.kind = RateLimiterKind::minimum_size, .minimum_items = 1}};
const Signature kOther{.columns = {{"state", env::ElementType::float32, {2}}}, .items = "steps"};

/// Whether every row that the item shows has the content that belongs to its number.
bool right(const ColumnPart& part, std::size_t item) {
  const std::span<const std::byte> numbers = part.rows(2, item);
  if (numbers.empty())
    return false;
  std::int64_t first = 0;
  std::memcpy(&first, numbers.data(), sizeof first);
  for (const std::size_t column : {0, 1, 3}) {
    const std::span<const std::byte> bytes = part.rows(column, item);
    const std::size_t row_bytes = part.columns[column].row_bytes;
    if (bytes.size() != part.items[item].rows * row_bytes)
      return false;
    for (std::size_t at = 0; at < bytes.size(); ++at)
      if (bytes[at]
          != content(first + static_cast<std::int64_t>(at / row_bytes), column, at % row_bytes))
        return false;
  }
  return true;
}

/// Items without shapes, so that each shows the number of its first row.
InsertionPtr whole_windows(WindowSource& source, int items) {
  for (int i = 0; i < items; ++i) {
    source.step();
    const std::int64_t count = 1 + i % source.writer.kept_rows();
    source.writer.add_item(source.writer.rows() - count, count);
  }
  return source.writer.take();
}

TEST_CASE("Sequences of any length arrive as columns in one or many parts, with or without shared "
          "memory") {
  for (const bool shared : {true, false})
    for (const std::size_t part_bytes : {std::size_t{1}, std::size_t{3000}, std::size_t{1} << 20}) {
      CAPTURE(shared);
      CAPTURE(part_bytes);
      env::wire::Context context;
      ShardHost host(context, kMinimumSize, kSignature, 4);
      ShardClientOptions options{.part_bytes = part_bytes};
      if (!shared)
        options.shared_memory.reset();
      ShardClient client(context, host.endpoint(), kSignature, options);
      WindowSource source(1, 16, 25, 3);
      REQUIRE(client.insert(whole_windows(source, 60), soon()));
      REQUIRE(client.flush(soon()));
      for (int round = 0; round < 5; ++round) {
        const auto batch = client.sample(50, soon());
        REQUIRE(batch);
        CHECK_EQ(batch->parts.size() == 1, part_bytes > 100000);
        CHECK_EQ(batch->parts.size() == 50, part_bytes == 1);
        std::size_t items = 0;
        for (const ColumnPart& part : batch->parts)
          for (std::size_t i = 0; i < part.items.size(); ++i, ++items) {
            CHECK(right(part, i));
            CHECK_EQ(part.items[i].table_items, 60);
          }
        CHECK_EQ(items, 50);
      }
    }
}

TEST_CASE("A late sample of columns is delivered by the next call") {
  env::wire::Context context;
  ShardHost host(context, {.limiter = {.kind = RateLimiterKind::minimum_size, .minimum_items = 3}},
                 kSignature, 4);
  ShardClient client(context, host.endpoint(), kSignature, {.ping_interval = seconds(20)});
  CHECK_FALSE(client.sample(4, Clock::now() + milliseconds(60)));
  WindowSource source(1, 16, 25, 3);
  REQUIRE(client.insert(whole_windows(source, 3), soon()));
  CHECK(client.sample(4, soon()));
  CHECK_EQ(client.stats(soon()).sampled, 4);
  CHECK_THROWS_AS(client.sample(0, soon()), std::invalid_argument);
  CHECK_THROWS_AS(client.sample(4, BatchView{}, 0, soon()), std::invalid_argument);
}

TEST_CASE("A client without a signature learns what a port stores") {
  env::wire::Context context;
  ShardHost host(context, {.max_items = 77, .limiter = {.minimum_items = 5}}, kSignature, 4);
  ShardClient client =
      ShardClient::connect(context, host.endpoint(), soon(), {.ping_interval = seconds(20)});
  CHECK(client.signature() == kSignature);
  WindowSource source(1, 16, 25, 3);
  REQUIRE(client.insert(whole_windows(source, 4), soon()));
  REQUIRE(client.flush(soon()));
  CHECK_FALSE(client.sample(2, Clock::now() + milliseconds(30)));
  const ShardInfo info = client.info(soon());
  CHECK_EQ(info.protocol, 6);
  CHECK(info.tables == std::vector<std::string>{""});
  REQUIRE(info.config);
  CHECK_EQ(info.config->max_items, 77);
  CHECK_EQ(info.stats.items, 4);
  CHECK_NE(info.why_waiting.find("4 of minimum_items 5"), std::string::npos);
}

TEST_CASE("An owner that does not report its configuration still has a signature") {
  env::wire::Context context;
  ShardHandlers handlers;
  handlers.report = [](const std::function<void(ShardReport)>& answer) {
    answer({.stats = {.items = 9}, .why_waiting = "nobody"});
  };
  const ShardServer server(context, {ServedTable{.signature = kOther, .handlers = handlers}});
  ShardClient client = ShardClient::connect(context, server.endpoint(), soon());
  CHECK(client.signature() == kOther);
  const ShardInfo info = client.info(soon());
  CHECK_FALSE(info.config);
  CHECK_EQ(info.stats.items, 9);
  CHECK_EQ(info.why_waiting, "nobody");
}

TEST_CASE("Several tables behind one port are distinguished by name") {
  env::wire::Context context;
  ShardHost host(context,
                 {{"windows", kMinimumSize, kSignature, 1}, {"states", kMinimumSize, kOther, 2}});
  CHECK_THROWS_WITH_AS(ShardClient::connect(context, host.endpoint(), soon()),
                       doctest::Contains("name one of \"windows\", \"states\""),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      ShardClient::connect(context, host.endpoint(), soon(), {.table = "window"}),
      doctest::Contains("no table \"window\" behind this port; name one of \"windows\""),
      std::runtime_error);
  ShardClient windows =
      ShardClient::connect(context, host.endpoint(), soon(), {.table = "windows"});
  ShardClient states = ShardClient::connect(context, host.endpoint(), soon(), {.table = "states"});
  CHECK(states.signature() == kOther);
  WindowSource source(1, 16, 25, 3);
  Writer writer(kOther, 1); // has the same number as a writer of the other table
  for (int i = 0; i < 3; ++i) {
    const float values[] = {1.5F, static_cast<float>(i)};
    std::memcpy(writer.next(0).data(), values, sizeof values);
    writer.append();
    writer.add_item(i, 1);
  }
  REQUIRE(states.insert(writer.take(), soon()));
  REQUIRE(states.flush(soon()));
  REQUIRE(windows.insert(whole_windows(source, 8), soon()));
  REQUIRE(windows.flush(soon()));
  CHECK_EQ(windows.stats(soon()).items, 8);
  CHECK_EQ(states.stats(soon()).items, 3);
  CHECK_EQ(host.stats(1).items, 3);
  const auto batch = states.sample(10, soon());
  REQUIRE(batch);
  for (std::size_t i = 0; i < 10; ++i) {
    float value = 0;
    std::memcpy(&value, batch->parts[0].rows(0, i).data(), sizeof value);
    CHECK_EQ(value, 1.5F);
  }
  // The signature of one table with the name of the other.
  ShardClient confused(context, host.endpoint(), kOther, {.table = "windows"});
  CHECK_THROWS_WITH_AS(confused.stats(soon()), doctest::Contains("the server stores picture"),
                       std::runtime_error);
  ShardClient nameless(context, host.endpoint(), kOther);
  CHECK_THROWS_WITH_AS(nameless.stats(soon()), doctest::Contains("there is no table \"\""),
                       std::runtime_error);
}

TEST_CASE("Two tables share a writer's rows, which are sent and held once") {
  for (const bool lost : {false, true}) { // lost: the first table's insertion never arrives
    CAPTURE(lost);
    env::wire::Context context;
    ShardHost host(context,
                   {{"short", kMinimumSize, kSignature, 1}, {"long", kMinimumSize, kSignature, 2}});
    ShardClient client(context, host.endpoint(), kSignature,
                       {.ping_interval = milliseconds(20), .table = "short"});
    WindowSource source(1, 16, 25, 3);
    for (int round = 0; round < 20; ++round) {
      const InsertionPtr all = whole_windows(source, 6);
      const std::size_t places[] = {0, 1, 0, 1, 0, 1};
      const std::vector<InsertionPtr> parts = split(*all, places, 2);
      REQUIRE_EQ(parts[0]->items.size(), 3);
      CHECK(parts[1]->rows.empty());
      if (!lost)
        REQUIRE(client.insert(parts[0], soon()));
      REQUIRE(client.insert(parts[1], soon(), "long"));
    }
    REQUIRE(client.flush(soon()));
    CHECK_EQ(host.stats(0).inserted, lost ? 0 : 60);
    CHECK_EQ(host.stats(1).inserted, 60);
    std::vector<Item> one;
    std::vector<Item> other;
    host.with_table([&](Table& table) { table.sample(40, other); }, 1);
    for (const Item& item : other)
      CHECK_EQ(item.chunks[0]->layout().signature.columns.size(), 4);
    if (lost)
      continue;
    host.with_table([&](Table& table) { table.sample(200, one); }, 0);
    std::map<std::uint64_t, const Chunk*> chunks;
    for (const Item& item : one)
      for (std::size_t i = 0; i < item.chunks.size(); ++i)
        chunks[item.chunks[i]->id()] = item.chunks[i].get();
    std::size_t common = 0;
    for (const Item& item : other)
      if (const auto at = chunks.find(item.chunks[0]->id()); at != chunks.end()) {
        CHECK_EQ(at->second, item.chunks[0].get());
        ++common;
      }
    CHECK_GT(common, 10);
  }
}

TEST_CASE("Unreadable items are refused with an explanation, and the port continues to serve") {
  env::wire::Context context;
  ShardHandlers handlers;
  handlers.report = [](const std::function<void(ShardReport)>& answer) {
    answer({.stats = {.items = 1}});
  };
  handlers.sample = [](std::int64_t, const std::function<void(std::vector<Item>)>& answer,
                       const WaitOptions&) {
    Writer writer(kOther, 1, {.reach = 4});
    for (int i = 0; i < 4; ++i)
      writer.append();
    writer.add_item(0, 4);
    Item item = writer.take()->items[0];
    item.chunks.set(0, ChunkEncoder(Compression::lz4).encode(*item.chunks[0], 0, 2)); // of 4 rows
    answer({item});
  };
  const ShardServer server(context, {ServedTable{.signature = kOther, .handlers = handlers}});
  ShardClient client(context, server.endpoint(), kOther);
  CHECK_THROWS_WITH_AS(client.sample(1, soon()), doctest::Contains("its items cannot be read: "),
                       std::runtime_error);
  CHECK_EQ(client.stats(soon()).items, 1);
}

TEST_CASE("Tables behind one port need distinct names, and each item needs a part") {
  env::wire::Context context;
  const auto serve = [&](std::vector<HostedTable> tables) { ShardHost(context, tables); };
  CHECK_THROWS_AS(serve({}), std::invalid_argument);
  CHECK_THROWS_AS(serve({{"a", kMinimumSize, kOther, 1}, {"a", kMinimumSize, kOther, 1}}),
                  std::invalid_argument);
  CHECK_THROWS_WITH_AS(serve({{"a", kMinimumSize, kOther, 1}, {"", kMinimumSize, kOther, 1}}),
                       doctest::Contains("needs a different name"), std::invalid_argument);
  WindowSource source(1, 16, 25, 3);
  const InsertionPtr all = whole_windows(source, 2);
  const std::size_t places[] = {0, 2};
  CHECK_THROWS_AS(split(*all, places, 2), std::invalid_argument);
  CHECK_THROWS_AS(split(*all, std::span(places).first(1), 2), std::invalid_argument);
  CHECK_EQ(split(*all, std::vector<std::size_t>{1, 1}, 2)[0], nullptr);
}

} // namespace
} // namespace troupe::replay
