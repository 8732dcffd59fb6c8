#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "replay/storage/checkpoint_reader.hpp"
#include "replay/storage/storage_error.hpp"
#include "replay/table/table.hpp"
#include "tests/replay/table/saved_table.hpp"
#include "tests/replay/table/set_priority.hpp"
#include "tests/replay/writers/episodes.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::replay {
namespace {

constexpr std::int64_t kMemory = 300'000;
constexpr std::int64_t kFilled = 60'000; // chunks that writers fill

TransitionSpec spec() {
  TransitionSpec made = pixel_spec(3, 3);
  made.frame.shape = {3, 16, 16};
  return made;
}

std::shared_ptr<SegmentStore> store_in(const TemporaryFolder& folder,
                                       std::uint64_t max_disk_bytes = 200'000'000) {
  return std::make_shared<SegmentStore>(
      SegmentStoreConfig{.folder = folder / "spill",
                         .segment_bytes = std::min<std::uint64_t>(65'536, max_disk_bytes / 8),
                         .max_disk_bytes = max_disk_bytes});
}

/// Two writers of random episodes, which also check the rows of batches.
struct TwoSources {
  TwoSources() {
    for (std::uint64_t id = 0; id < 2; ++id) {
      writers.push_back(transition_writer(spec(), id, 8));
      players.emplace_back(spec(), id + 1, static_cast<std::int64_t>(id) * 1'000'000);
    }
  }
  InsertionPtr next() {
    turn = 1 - turn;
    while (writers[turn].pending_items() < 3)
      players[turn].step(writers[turn]);
    return writers[turn].take();
  }
  void check_row(const Batch& batch, std::size_t row) const {
    std::uint32_t episode = 0;
    const std::size_t observation = spec().observation().bytes();
    std::memcpy(&episode, &batch.observation[(row + 1) * observation - spec().frame.bytes()],
                sizeof episode);
    players[episode < 1'000'000 ? 0 : 1].check_row(batch, row);
  }
  std::size_t turn = 0;
  std::vector<Writer> writers;
  std::vector<Player> players;
};

Batch gathered(const std::vector<Item>& items, WindowReader* reader = nullptr) {
  Batch batch(spec(), static_cast<std::int64_t>(items.size()));
  gather(spec(), items, batch.view(), 0, reader);
  return batch;
}

Batch next_sample(Table& table, std::int64_t count, WindowReader* reader = nullptr) {
  std::vector<Item> items;
  table.sample(count, items);
  return gathered(items, reader);
}

TEST_CASE("A table much larger than its memory gives the same samples as one in memory") {
  for (const Compression compression :
       {Compression::none, Compression::packed, Compression::zstd, Compression::automatic})
    for (const SelectorKind remover : {SelectorKind::fifo, SelectorKind::uniform}) {
      const TemporaryFolder folder;
      TableConfig config{.max_items = remover == SelectorKind::fifo ? 4000 : 800,
                         .sampler = {.kind = SelectorKind::prioritized},
                         .remover = {.kind = remover},
                         .compression = compression};
      Table roomy(config, spec(), 7);
      config.max_bytes = kMemory;
      Table small(config, spec(), 7);
      const auto store = store_in(folder);
      small.spill_to(store);
      TwoSources source;
      std::mt19937_64 random(2);
      std::vector<Item> items;
      std::vector<Item> same;
      std::deque<std::pair<std::vector<Item>, Batch>> in_flight; // samples that are still in use
      WindowReader reader;
      for (int i = 0; i < 3000; ++i) {
        const InsertionPtr made = source.next();
        roomy.insert(*made);
        small.insert(*made);
        REQUIRE_LE(small.stats().bytes, kMemory + kFilled);
        if (i % 20 != 0)
          continue;
        roomy.sample(16, items);
        small.sample(16, same);
        Batch batch = gathered(items);
        REQUIRE(batch == gathered(same, &reader));
        for (const Item& item : items) {
          const double priority = static_cast<double>(random() % 8);
          set_priority(roomy, item.key, priority);
          set_priority(small, item.key, priority);
        }
        in_flight.emplace_back(same, std::move(batch));
        if (in_flight.size() > 10) {
          REQUIRE(gathered(in_flight.front().first) == in_flight.front().second);
          in_flight.pop_front();
        }
      }
      const TableStats stats = small.stats();
      CHECK_EQ(stats.items, config.max_items);
      CHECK_EQ(stats.failed_spills, 0);
      CHECK_GT(stats.disk_bytes + stats.bytes, compression == Compression::none ? 2'000'000 : 1);
      CHECK_GT(stats.chunks_on_disk, 50);
      in_flight.clear();
      same.clear();
      CHECK_EQ(store->stats().blobs, static_cast<std::uint64_t>(stats.chunks_on_disk));
      if (remover == SelectorKind::uniform)
        CHECK_GT(store->stats().moved_bytes, 0);
    }
}

TEST_CASE("On a full disk, the oldest items are removed and all others stay correct") {
  const TemporaryFolder folder;
  Table table({.max_items = 100'000, .max_bytes = kMemory}, spec(), 7);
  table.spill_to(store_in(folder, 400'000));
  TwoSources source;
  std::uint64_t most = 0;
  for (int i = 0; i < 3000; ++i) {
    table.insert(*source.next());
    most = std::max(most, static_cast<std::uint64_t>(table.stats().disk_bytes));
    REQUIRE_LE(table.stats().bytes, kMemory + kFilled);
  }
  const TableStats stats = table.stats();
  CHECK_GT(stats.failed_spills, 0);
  CHECK(table.spill_error().find("max_disk_bytes") != std::string::npos);
  CHECK_LT(most, 400'000);
  CHECK_GT(stats.disk_bytes, 250'000);
  CHECK_FALSE(table.contains(static_cast<std::uint64_t>(stats.inserted - stats.items - 1)));
  const Batch batch = next_sample(table, 500);
  for (std::size_t i = 0; i < batch.rows; ++i)
    source.check_row(batch, i);
}

TEST_CASE("A table on disk is saved and restored, to disk without copying or into memory") {
  const TemporaryFolder folder;
  TableConfig config{.max_items = 4000, .max_bytes = kMemory};
  Table table(config, spec(), 7);
  table.spill_to(store_in(folder));
  TwoSources source;
  for (int i = 0; i < 1000; ++i)
    table.insert(*source.next());
  save(table, folder / "1");
  for (int i = 0; i < 20; ++i)
    table.insert(*source.next());
  save(table, folder / "2", folder / "1");
  CHECK_LT(own_blobs(folder / "2"), 30);
  Table restored(config, spec(), 1);
  const auto store = store_in(folder);
  restored.spill_to(store);
  restored.load(folder / "2");
  std::filesystem::remove_all(folder / "1");
  std::filesystem::remove_all(folder / "2"); // the table keeps the files open
  CHECK_EQ(store->stats().appended_bytes, 0);
  CHECK_GT(restored.stats().chunks_on_disk, 50);
  CHECK_LE(restored.stats().bytes, kMemory + kFilled);
  CHECK_EQ(restored.stats().items, table.stats().items);
  for (int i = 0; i < 500; ++i) {
    if (i % 25 == 0)
      REQUIRE(next_sample(restored, 32) == next_sample(table, 32));
    const InsertionPtr made = source.next();
    table.insert(*made);
    restored.insert(*made);
  }
  save(restored, folder / "3");
  config.max_bytes = std::int64_t{1} << 30;
  Table memory(config, spec(), 1);
  CHECK(memory.load(folder / "3", Table::ConfigChange::accept).find("max_bytes")
        != std::string::npos);
  CHECK_EQ(memory.stats().chunks_on_disk, 0);
  CHECK(next_sample(memory, 500) == next_sample(restored, 500));
}

TEST_CASE("A load that fails leaves no blob of its checkpoint in the store") {
  const TemporaryFolder folder;
  Table table({.max_items = 4000}, spec(), 7);
  TwoSources source;
  for (int i = 0; i < 50; ++i)
    table.insert(*source.next());
  save(table, folder / "1");
  const CheckpointReader reader(folder / "1");
  const CheckpointBlob blob = reader.blobs()[0];
  const std::filesystem::path segment = reader.segments()[blob.segment]->path();
  const std::string whole = read_text(segment);
  std::string damaged = whole;
  damaged.at(blob.place.offset) ^= '\1';
  write_bytes(segment, damaged);
  Table restored({.max_items = 4000}, spec(), 1);
  const auto store = store_in(folder);
  restored.spill_to(store);
  CHECK_THROWS_AS(restored.load(folder / "1"), StorageError);
  CHECK_EQ(store->stats().blobs, 0);
  write_bytes(segment, whole);
  restored.load(folder / "1");
  CHECK_EQ(store->stats().blobs, static_cast<std::uint64_t>(restored.stats().chunks_on_disk));
  CHECK_EQ(restored.stats().items, table.stats().items);
}

TEST_CASE("Batches are gathered from disk while the table spills and compacts") {
  const TemporaryFolder folder;
  Table table({.max_items = 2000,
               .max_bytes = kMemory,
               .remover = {.kind = SelectorKind::uniform},
               .compression = Compression::lz4},
              spec(), 7);
  table.spill_to(store_in(folder));
  TwoSources source;
  for (int i = 0; i < 500; ++i)
    table.insert(*source.next());
  std::mutex mutex;
  std::deque<std::vector<Item>> samples;
  std::atomic<bool> done = false;
  std::atomic<int> gathered_rows = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      WindowReader reader;
      while (!done) {
        std::vector<Item> items;
        {
          const std::lock_guard lock(mutex);
          if (!samples.empty()) {
            items = std::move(samples.front());
            samples.pop_front();
          }
        }
        if (items.empty()) {
          std::this_thread::yield();
          continue;
        }
        const Batch batch = gathered(items, &reader);
        gathered_rows += static_cast<int>(batch.rows);
      }
    });
  int asked = 0;
  for (int i = 0; i < 600; ++i) {
    table.insert(*source.next());
    std::vector<Item> items;
    table.sample(8, items);
    const std::lock_guard lock(mutex);
    if (samples.size() < 50) {
      samples.push_back(std::move(items));
      asked += 8;
    }
  }
  while (gathered_rows < asked)
    std::this_thread::yield();
  done = true;
  for (std::thread& reader : readers)
    reader.join();
  CHECK_GT(table.stats().chunks_on_disk, 10);
}

} // namespace
} // namespace troupe::replay
