// Restores shards from a checkpoint with fewer or more shards.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "replay/chunks/window_reader.hpp"
#include "replay/storage/checkpoint_reader.hpp"
#include "replay/table/reshard.hpp"
#include "replay/table/table.hpp"
#include "tests/replay/table/saved_table.hpp"
#include "tests/replay/writers/episodes.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::replay {
namespace {

namespace fs = std::filesystem;

TEST_CASE("Every item belongs to one part, and the sizes of parts differ by at most one") {
  for (const std::vector<std::uint64_t>& items :
       {std::vector<std::uint64_t>{0}, {1}, {7}, {1000}, {10, 0, 3}, {333, 333, 334}, {1, 5000}})
    for (const std::uint32_t parts : {1U, 2U, 3U, 5U, 64U}) {
      std::vector<std::vector<int>> times;
      for (const std::uint64_t count : items)
        times.emplace_back(count, 0);
      const auto total = std::accumulate(items.begin(), items.end(), std::uint64_t{0});
      for (std::uint32_t part = 0; part < parts; ++part) {
        const auto ranges = reshard(items, part, parts);
        REQUIRE_EQ(ranges.size(), items.size());
        std::uint64_t mine = 0;
        for (std::size_t table = 0; table < items.size(); ++table)
          for (const ItemRange& range : ranges[table]) {
            mine += range.end - range.begin;
            for (std::uint64_t i = range.begin; i < range.end; ++i)
              ++times.at(table).at(i);
          }
        CHECK_EQ(mine, even_share(total, part, parts));
        CHECK_LE(mine, total / parts + 1);
      }
      for (const auto& table : times)
        CHECK(std::all_of(table.begin(), table.end(), [](int n) { return n == 1; }));
    }
}

/// What identifies a transition (Known), and what must be preserved with it (Carried).
struct Known {
  std::vector<std::byte> rows;
  std::uint32_t history = 0;
  auto operator<=>(const Known&) const = default;
};
struct Carried {
  double priority = 0;
  std::uint32_t times_sampled = 0;
  int copies = 0;
};

void note(const Table& table, std::uint64_t end, std::map<Known, Carried>& all) {
  WindowReader window;
  for (std::uint64_t key = 0; key < end; ++key) {
    if (!table.contains(key))
      continue;
    const Item item = table.item(key);
    window.open(item);
    Known known{.rows = {}, .history = item.history};
    const std::size_t bytes = item.chunks[0]->layout().row_bytes;
    for (std::uint32_t k = 0; k < item.rows; ++k)
      known.rows.insert(known.rows.end(), window.row(k), window.row(k) + bytes);
    Carried& carried = all[known];
    carried.priority += item.priority;
    carried.times_sampled += item.times_sampled;
    ++carried.copies;
  }
}

struct Shards {
  TransitionSpec spec;
  std::vector<fs::path> folders;
  std::map<Known, Carried> items;
  TableStats sum;
  InsertionPtr last; // the first writer's
};

void add(TableStats& sum, const TableStats& one) {
  sum.items += one.items;
  sum.inserted += one.inserted;
  sum.sampled += one.sampled;
  sum.dropped_duplicates += one.dropped_duplicates;
  sum.updated_priorities += one.updated_priorities;
  sum.late_priorities += one.late_priorities;
}

/// Shards as in a run: two writers each, episodes of all lengths, samples and new priorities.
Shards fill(const fs::path& folder, const TableConfig& config, int count, int insertions) {
  Shards made{.spec = pixel_spec(3, 3), .folders = {}, .items = {}, .sum = {}, .last = nullptr};
  for (int shard = 0; shard < count; ++shard) {
    Table table(config, made.spec, static_cast<std::uint64_t>(shard));
    std::vector<std::unique_ptr<Writer>> writers;
    std::vector<Player> players;
    for (int i = 0; i < 2; ++i) {
      const auto id = static_cast<std::uint64_t>(10 * shard + i);
      writers.push_back(std::make_unique<Writer>(transition_writer(made.spec, id, 12)));
      players.emplace_back(made.spec, id + 1, static_cast<std::int64_t>(100'000 * id));
    }
    for (int i = 0; i < insertions + shard; ++i) {
      const std::size_t who = static_cast<std::size_t>(i % 2);
      while (writers[who]->pending_items() < 3)
        players[who].step(*writers[who]);
      const InsertionPtr insertion = writers[who]->take();
      table.insert(*insertion);
      if (i % 5 == 0)
        table.insert(*insertion); // a duplicate
      if (shard == 0 && who == 0)
        made.last = insertion;
    }
    std::vector<Item> sampled;
    table.sample(40, sampled);
    std::vector<std::uint64_t> keys;
    std::vector<double> priorities;
    for (const Item& item : sampled) {
      keys.push_back(item.key);
      priorities.push_back(0.5 + static_cast<double>(keys.size()));
    }
    keys.push_back(1'000'000);
    priorities.push_back(1);
    table.update_priorities(keys, priorities);
    note(table, static_cast<std::uint64_t>(table.stats().inserted), made.items);
    add(made.sum, table.stats());
    made.folders.push_back(folder / ("shard-" + std::to_string(shard)));
    write_checkpoint(table.snapshot(), made.folders.back());
  }
  return made;
}

void check_dealt(const Shards& from, const TableConfig& config, std::uint32_t parts) {
  std::map<Known, Carried> items;
  TableStats sum;
  for (std::uint32_t part = 0; part < parts; ++part) {
    Table table(config, from.spec, 99);
    CHECK_EQ(table.load_part(from.folders, part, parts), 0);
    CHECK_LE(table.stats().items, from.sum.items / parts + 1);
    note(table, static_cast<std::uint64_t>(table.stats().inserted), items);
    add(sum, table.stats());
    // Each part drops as a duplicate what a writer had inserted into any shard.
    table.insert(*from.last);
    CHECK_EQ(table.stats().inserted,
             static_cast<std::int64_t>(
                 even_share(static_cast<std::uint64_t>(from.sum.inserted), part, parts)));
    std::vector<Item> sampled; // a normal table, also after it has been saved again
    table.sample(50, sampled);
    const TemporaryFolder again;
    write_checkpoint(table.snapshot(), again / "table");
    Table same(config, from.spec, 1);
    same.load(again / "table");
    CHECK(same.stats() == table.stats());
  }
  CHECK(sum == from.sum);
  REQUIRE_EQ(items.size(), from.items.size());
  for (const auto& [known, carried] : from.items) {
    REQUIRE(items.contains(known));
    CHECK_EQ(items.at(known).copies, carried.copies);
    CHECK_EQ(items.at(known).times_sampled, carried.times_sampled);
    CHECK_EQ(items.at(known).priority, doctest::Approx(carried.priority));
  }
}

TEST_CASE(
    "The items of three shards are divided among one to five shards without loss or duplicates") {
  for (const SelectorKind sampler : {SelectorKind::uniform, SelectorKind::prioritized})
    for (const SelectorKind remover : {SelectorKind::fifo, SelectorKind::uniform}) {
      const TableConfig config{.max_items = 1000,
                               .sampler = {.kind = sampler},
                               .remover = {.kind = remover},
                               .limiter = {.minimum_items = 10, .samples_per_insert = 2}};
      const TemporaryFolder folder;
      const Shards three = fill(folder.path(), config, 3, 70);
      CHECK_GT(three.sum.items, 500);
      for (const std::uint32_t parts : {1U, 2U, 3U, 5U})
        check_dealt(three, config, parts);
    }
}

TEST_CASE(
    "Compressed items are also divided, and the oldest above the limit are dropped and counted") {
  TableConfig config{.max_items = 1000, .compression = Compression::zstd};
  const TemporaryFolder folder;
  const Shards three = fill(folder.path(), config, 3, 60);
  check_dealt(three, config, 5);
  config.max_items = 100;
  Table small(config, three.spec, 1);
  CHECK_EQ(small.load_part(three.folders, 1, 2),
           static_cast<std::int64_t>(even_share(static_cast<std::uint64_t>(three.sum.items), 1, 2))
               - 100);
  CHECK_EQ(small.stats().items, 100);
}

TEST_CASE("A missing, damaged or mismatched part of a table is refused and changes nothing") {
  const TemporaryFolder folder;
  const TableConfig config{.max_items = 400};
  const Shards three = fill(folder.path(), config, 3, 30);
  Table table(config, three.spec, 1);
  table.load(three.folders[0]);
  const TableStats before = table.stats();
  CHECK_THROWS_AS(table.load_part({}, 0, 2), std::invalid_argument);
  CHECK_THROWS_AS(table.load_part(three.folders, 2, 2), std::invalid_argument);
  Table other(config, pixel_spec(3, 4), 1);
  CHECK_THROWS_WITH_AS(other.load_part(three.folders, 0, 2), doctest::Contains("n_step 4"),
                       std::runtime_error);
  const auto refused = [&] {
    CHECK_THROWS_WITH_AS(table.load_part(three.folders, 0, 1), doctest::Contains("shard-1"),
                         std::runtime_error);
    CHECK(table.stats() == before);
  };
  for (const auto& [name, whole] : contents_of_folder(three.folders[1])) {
    write_bytes(three.folders[1] / name, whole.substr(0, whole.size() - 1));
    refused();
    write_bytes(three.folders[1] / name, whole);
  }
  const CheckpointReader reader(three.folders[1]);
  const CheckpointBlob blob = reader.blobs()[0];
  const fs::path segment = reader.segments()[blob.segment]->path();
  const std::string whole = read_text(segment);
  std::string damaged = whole;
  damaged.at(blob.place.offset) ^= '\1';
  write_bytes(segment, damaged);
  refused();
  write_bytes(segment, whole);
  fs::remove(three.folders[1] / "manifest");
  refused();
}

} // namespace
} // namespace troupe::replay
