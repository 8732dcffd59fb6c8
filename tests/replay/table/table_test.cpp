#include "replay/table/table.hpp"

#include <cmath>
#include <map>
#include <set>

#include <doctest/doctest.h>

#include "tests/replay/writers/episodes.hpp"

namespace troupe::replay {
namespace {

InsertionPtr some_items(Writer& writer, Player& player, std::int64_t least) {
  while (writer.pending_items() < least)
    player.step(writer);
  return writer.take();
}

TEST_CASE("The oldest items are removed first, and samples come from the newest max_items") {
  const TransitionSpec spec = pixel_spec(2, 3);
  Table table({.max_items = 100}, spec, 1);
  Writer writer = transition_writer(spec, 1, 8);
  Player player(spec, 2);
  std::vector<Item> items;
  Batch batch(spec, 500);
  while (table.stats().inserted < 3000) {
    table.insert(*some_items(writer, player, 1));
    const TableStats stats = table.stats();
    REQUIRE_EQ(stats.items, std::min<std::int64_t>(100, stats.inserted));
  }
  table.sample(500, items);
  gather(spec, items, batch.view(), 0);
  std::map<std::pair<std::int64_t, std::size_t>, std::uint64_t> key_of;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto which = player.check_row(batch, i);
    CHECK_GE(batch.key[i], static_cast<std::uint64_t>(table.stats().inserted - 100));
    CHECK_LT(batch.key[i], static_cast<std::uint64_t>(table.stats().inserted));
    CHECK_EQ(key_of.try_emplace(which, batch.key[i]).first->second, batch.key[i]);
  }
  CHECK_GT(key_of.size(), 90); // of 100, by 500 draws
}

TEST_CASE("Bytes stay within one chunk of the budget, and memory is freed with its items") {
  const TransitionSpec spec = pixel_spec(3, 2);
  const std::int64_t chunk_bytes =
      static_cast<std::int64_t>(Chunk(std::make_shared<const RowLayout>(spec), 0, 16).bytes());
  Table table({.max_items = 100000, .max_bytes = 5 * chunk_bytes + 100}, spec, 1);
  Writer one = transition_writer(spec, 1, 16);
  Writer two = transition_writer(spec, 2, 16);
  Player player_one(spec, 2);
  Player player_two(spec, 3);
  std::vector<std::weak_ptr<const Chunk>> all;
  for (int i = 0; i < 400; ++i) {
    for (const InsertionPtr& made :
         {some_items(one, player_one, 1), some_items(two, player_two, 3)}) {
      table.insert(*made);
      for (const ChunkRows& rows : made->rows)
        if (all.empty() || all.back().lock() != rows.chunk)
          all.push_back(rows.chunk);
    }
    REQUIRE_LE(table.stats().bytes, 6 * chunk_bytes + 100);
    REQUIRE_EQ(table.stats().bytes % chunk_bytes, 0);
  }
  CHECK_GE(table.stats().bytes, 4 * chunk_bytes);
  std::set<const Chunk*> alive;
  for (const auto& weak : all)
    if (const auto chunk = weak.lock())
      alive.insert(chunk.get());
  CHECK_LE(alive.size(), 6 + 4); // and the ones that the two writers hold
}

// chi-square with 199 degrees of freedom: mean 199, standard deviation 20.
TEST_CASE("Sampling is uniform") {
  const TransitionSpec spec = state_spec(1, 2);
  Table table({.max_items = 200}, spec, 7);
  Writer writer = transition_writer(spec, 1);
  Player player(spec, 2);
  while (table.stats().inserted < 500)
    table.insert(*some_items(writer, player, 1));
  std::map<std::uint64_t, double> count;
  std::vector<Item> items;
  for (int i = 0; i < 400; ++i) {
    table.sample(1000, items);
    for (const Item& item : items)
      ++count[item.key];
  }
  REQUIRE_EQ(count.size(), 200);
  double chi_square = 0;
  for (const auto& [key, seen] : count)
    chi_square += (seen - 2000) * (seen - 2000) / 2000;
  CHECK_GT(chi_square, 199 - 100);
  CHECK_LT(chi_square, 199 + 100);
  CHECK_EQ(table.stats().sampled, 400000);
}

TEST_CASE("A repeated insertion counts once in any order") {
  const TransitionSpec spec = pixel_spec(2, 1);
  Table table({}, spec, 1);
  Writer writer = transition_writer(spec, 42, 16);
  Player player(spec, 2);
  std::vector<InsertionPtr> made;
  std::int64_t items = 0;
  for (int i = 0; i < 60; ++i) {
    made.push_back(some_items(writer, player, 2));
    items += std::ssize(made.back()->items);
  }
  std::mt19937_64 random(3);
  auto shuffled = made;
  shuffled.insert(shuffled.end(), made.begin(), made.end());
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  for (const InsertionPtr& insertion : shuffled)
    table.insert(*insertion);
  CHECK_EQ(table.stats().inserted, items);
  CHECK_EQ(table.stats().dropped_duplicates, 60);
  Insertion other = *made[0];
  other.writer_id = 43;
  table.insert(other);
  CHECK_EQ(table.stats().inserted, items + std::ssize(other.items));
}

TEST_CASE(
    "The limiter always allows an insertion or a sample, and the drift stays within the buffer") {
  const TransitionSpec spec = state_spec(1, 2);
  std::mt19937_64 random(3);
  for (const double ratio : {0.1, 1.0, 1.7, 8.0, 256.0})
    for (const std::int64_t minimum_items : {1, 10, 500})
      for (const std::int64_t batch : {1, 32, 256}) {
        CAPTURE(ratio);
        CAPTURE(minimum_items);
        CAPTURE(batch);
        const double buffer = std::max(1.0, ratio) + 0.5;
        Table table({.max_items = 600,
                     .limiter = {.minimum_items = minimum_items,
                                 .samples_per_insert = ratio,
                                 .error_buffer = buffer}},
                    spec, 1);
        Writer writer = transition_writer(spec, 1);
        Player player(spec, 2);
        std::vector<Item> items;
        for (int step = 0; step < 3000; ++step) {
          REQUIRE((table.can_insert() || table.can_sample(batch)));
          REQUIRE_EQ(table.why_blocked(batch).empty(),
                     table.can_insert() && table.can_sample(batch));
          if (table.can_insert() && (random() % 2 == 0 || !table.can_sample(batch)))
            table.insert(*some_items(writer, player, 1));
          else
            table.sample(batch, items);
          const TableStats stats = table.stats();
          const double drift = ratio * static_cast<double>(stats.inserted - minimum_items)
                               - static_cast<double>(stats.sampled);
          const double allowed = std::max(buffer, static_cast<double>(batch) + ratio);
          if (stats.inserted < minimum_items)
            REQUIRE_EQ(stats.sampled, 0);
          else {
            REQUIRE_GE(drift, -allowed - 1e-9);
            REQUIRE_LE(drift, buffer + 20 * ratio); // an insertion is accepted as a whole
          }
        }
        CHECK_GT(table.stats().sampled, 0);
      }
}

TEST_CASE("The minimum_size limiter requires only minimum_items") {
  const TransitionSpec spec = state_spec(1, 2);
  Table table({.limiter = {.kind = RateLimiterKind::minimum_size, .minimum_items = 50}}, spec, 1);
  Writer writer = transition_writer(spec, 1);
  Player player(spec, 2);
  std::vector<Item> items;
  while (table.stats().inserted < 50) {
    CHECK_FALSE(table.can_sample(1));
    CHECK(table.can_insert());
    table.insert(*some_items(writer, player, 1));
  }
  for (int i = 0; i < 100; ++i) {
    CHECK(table.can_sample(256));
    CHECK(table.can_insert());
    table.sample(256, items);
  }
}

TEST_CASE("An empty table returns no items") {
  Table table({}, state_spec(1), 1);
  std::vector<Item> items(3);
  table.sample(5, items);
  CHECK(items.empty());
  CHECK_FALSE(table.can_sample(1));
  CHECK_EQ(table.why_blocked(), "samples wait for inserts: 0 of minimum_items 1 inserted");
}

TEST_CASE("A configuration out of range is refused, and the error names the key") {
  const auto refused = [](const TableConfig& config, const char* words) {
    CHECK_THROWS_WITH_AS(Table(config, state_spec(1), 1), doctest::Contains(words),
                         std::invalid_argument);
  };
  refused({.max_items = 0}, "replay.max_items is 0");
  refused({.max_bytes = 0}, "replay.max_bytes is 0");
  refused({.max_items = 10, .limiter = {.minimum_items = 11}}, "replay.minimum_items is 11");
  refused({.limiter = {.samples_per_insert = std::nan("")}}, "replay.samples_per_insert is nan");
  refused({.limiter = {.samples_per_insert = 8, .error_buffer = 4}}, "replay.error_buffer is 4");
}

} // namespace
} // namespace troupe::replay
