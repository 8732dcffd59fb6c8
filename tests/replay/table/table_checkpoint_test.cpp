#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "replay/replay.pb.h"
#include "replay/storage/blocks.hpp"
#include "replay/storage/segment_store.hpp"
#include "replay/table/table.hpp"
#include "tests/replay/table/saved_table.hpp"
#include "tests/replay/table/set_priority.hpp"
#include "tests/replay/writers/episodes.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::replay {
namespace {

namespace fs = std::filesystem;

struct Filled {
  explicit Filled(const TransitionSpec& s, const TableConfig& c, int insertions = 120)
      : spec(s), config(c), writer(transition_writer(s, 5, 12)), player(s, 2), table(c, s, 99) {
    for (int i = 0; i < insertions; ++i)
      add(table);
    std::vector<Item> items;
    table.sample(33, items);
  }
  void add(Table& to) { to.insert(*next()); }
  InsertionPtr next() {
    while (writer.pending_items() < 3)
      player.step(writer);
    return writer.take();
  }
  TransitionSpec spec;
  TableConfig config;
  Writer writer;
  Player player;
  Table table;
};

Batch next_sample(Table& table, const TransitionSpec& spec, std::int64_t count) {
  std::vector<Item> items;
  table.sample(count, items);
  Batch batch(spec, static_cast<std::int64_t>(items.size()));
  gather(spec, items, batch.view(), 0);
  return batch;
}

TEST_CASE("A loaded table continues with the same contents, counters, duplicates and samples") {
  const TemporaryFolder folder;
  Filled from(pixel_spec(3, 3),
              {.max_items = 250, .limiter = {.minimum_items = 10, .samples_per_insert = 2}});
  save(from.table, folder / "table");
  Table restored(from.config, from.spec, 1);
  restored.load(folder / "table");
  CHECK(restored.stats() == from.table.stats());
  CHECK_EQ(restored.can_insert(), from.table.can_insert());
  CHECK_EQ(restored.why_blocked(64), from.table.why_blocked(64));
  for (int i = 0; i < 5; ++i)
    CHECK(next_sample(restored, from.spec, 64) == next_sample(from.table, from.spec, 64));
  save(restored, folder / "again");
  save(from.table, folder / "table");
  CHECK((contents_of_folder(folder / "again") == contents_of_folder(folder / "table")));
  // It takes the next insertion, once.
  const InsertionPtr made = from.next();
  for (Table* table : {&restored, &from.table}) {
    table->insert(*made);
    table->insert(*made);
  }
  CHECK_EQ(restored.stats().inserted, from.table.stats().inserted);
  CHECK_EQ(restored.stats().dropped_duplicates, from.table.stats().dropped_duplicates);
  const Batch batch = next_sample(restored, from.spec, 64);
  CHECK(batch == next_sample(from.table, from.spec, 64));
  for (std::size_t i = 0; i < batch.rows; ++i)
    from.player.check_row(batch, i);
}

TEST_CASE("A loaded table with fading makes the same samples, and another fading is refused") {
  const TemporaryFolder folder;
  TableConfig config{
      .max_items = 250,
      .sampler = {
          .kind = SelectorKind::prioritized, .exponent = 0.6, .fade = 0.98, .least_fade = 0.2}};
  Filled from(pixel_spec(3, 3), config);
  for (std::uint64_t key = 0; key < static_cast<std::uint64_t>(from.table.stats().inserted); ++key)
    if (from.table.contains(key))
      set_priority(from.table, key, static_cast<double>(1 + key % 7));
  save(from.table, folder / "table");
  Table restored(config, from.spec, 1);
  restored.load(folder / "table");
  for (int i = 0; i < 5; ++i) {
    CHECK(next_sample(restored, from.spec, 64) == next_sample(from.table, from.spec, 64));
    const InsertionPtr made = from.next();
    restored.insert(*made);
    from.table.insert(*made);
  }
  config.sampler.fade = 1;
  Table other(config, from.spec, 1);
  CHECK_THROWS_WITH_AS(other.load(folder / "table"), doctest::Contains("fade 0.98 to 0.2"),
                       std::runtime_error);
}

TEST_CASE("An empty table and one of a single item can be saved") {
  const TemporaryFolder folder;
  for (const int insertions : {0, 1}) {
    Filled from(pixel_spec(1, 1), {}, insertions);
    save(from.table, folder / "table");
    Table restored({}, from.spec, 1);
    restored.load(folder / "table");
    CHECK(restored.stats() == from.table.stats());
    CHECK(next_sample(restored, from.spec, 8) == next_sample(from.table, from.spec, 8));
  }
}

TEST_CASE("Other transitions and another configuration are refused with the difference") {
  const TemporaryFolder folder;
  Filled from(pixel_spec(3, 3), {.max_items = 250, .limiter = {.samples_per_insert = 2}});
  save(from.table, folder / "table");
  Table other_spec(from.config, pixel_spec(3, 4), 1);
  CHECK_THROWS_WITH_AS(other_spec.load(folder / "table"), doctest::Contains("n_step 4"),
                       std::runtime_error);
  Table other_config({.max_items = 100, .limiter = {.samples_per_insert = 8}}, from.spec, 1);
  CHECK_THROWS_WITH_AS(other_config.load(folder / "table"),
                       doctest::Contains("replay.max_items was 250 and is 100, "
                                         "replay.samples_per_insert was 2 and is 8"),
                       std::runtime_error);
  CHECK_EQ(other_config.stats().items, 0);
}

TEST_CASE("An accepted configuration change applies, and the limiter does not block forever") {
  const TemporaryFolder folder;
  Filled from(pixel_spec(3, 3),
              {.max_items = 250, .limiter = {.samples_per_insert = 0.5, .error_buffer = 5}});
  save(from.table, folder / "table");
  for (const double ratio : {0.01, 1000.0}) {
    Table changed(
        {.max_items = 100, .limiter = {.samples_per_insert = ratio, .error_buffer = 2000}},
        from.spec, 1);
    changed.load(folder / "table", Table::ConfigChange::accept);
    CHECK_EQ(changed.stats().items, 100);
    CHECK(changed.can_insert());
    CHECK(changed.can_sample(64));
    const Batch batch = next_sample(changed, from.spec, 64);
    for (std::size_t i = 0; i < batch.rows; ++i)
      from.player.check_row(batch, i);
  }
}

TEST_CASE("A missing, truncated, damaged or foreign checkpoint is refused and changes nothing") {
  const TemporaryFolder folder;
  Filled from(pixel_spec(2, 2), {.max_items = 60}, 30);
  save(from.table, folder / "table");
  const TableStats before = from.table.stats();
  CHECK_THROWS_AS(from.table.load(folder / "absent"), std::runtime_error);
  fs::create_directory(folder / "bad");
  const auto whole = contents_of_folder(folder / "table");
  std::mt19937_64 random(1);
  int passed = 0;
  for (const auto& [name, bytes] : whole) {
    const auto refused = [&](const std::string& changed) {
      for (const auto& [file, right] : whole)
        write_bytes(folder / "bad" / file, file == name ? changed : right);
      CHECK_THROWS_WITH_AS(from.table.load(folder / "bad"), doctest::Contains("bad"),
                           std::runtime_error);
    };
    refused("");
    refused("PK\x03\x04 something else entirely");
    refused(bytes + "x");
    for (int i = 0; i < 40; ++i) {
      refused(bytes.substr(0, random() % bytes.size()));
      std::string damaged = bytes;
      damaged[random() % damaged.size()] ^= static_cast<char>(1U << random() % 8);
      if (name == "manifest") {
        refused(damaged);
        continue;
      }
      write_bytes(folder / "bad" / name, damaged);
      try { // heads of records in a segment are not read, so they may be damaged
        Table table(from.config, from.spec, 1);
        table.load(folder / "bad");
        Table same(from.config, from.spec, 1);
        same.load(folder / "table");
        CHECK(next_sample(table, from.spec, 64) == next_sample(same, from.spec, 64));
        ++passed;
      } catch (const std::runtime_error&) {
      }
    }
  }
  CHECK_LT(passed, 10);
  CHECK(from.table.stats() == before);
}

std::vector<std::byte> header_of(const fs::path& folder) {
  const CheckpointReader reader(folder);
  return {reader.header().begin(), reader.header().end()};
}

/// Writes the same checkpoint with another header and correct checksums.
void write_with_header(const fs::path& from, const fs::path& to,
                       std::span<const std::byte> header) {
  const CheckpointReader reader(from);
  fs::remove_all(to);
  CheckpointWriter writer(to, from);
  for (const CheckpointBlob& blob : reader.blobs())
    REQUIRE(writer.keep(blob.key));
  writer.commit(header);
}

/// Writes the checkpoint of a table without priorities, whose remover is fifo, with changed
/// contents and correct checksums.
void write_changed(const fs::path& from, const fs::path& to,
                   const std::function<void(wire::SavedTable&, std::vector<ItemWindow>&)>& change) {
  const std::vector<std::byte> header = header_of(from);
  BlockReader reader(header, from.string());
  std::byte begin[16]; // the magic and the version
  reader.raw(begin, sizeof begin);
  std::string bytes(reader.begin_block(1 << 20), '\0');
  reader.unpack(bytes.data(), bytes.size());
  wire::SavedTable head;
  REQUIRE(head.ParseFromString(bytes));
  std::vector<ItemWindow> windows = reader.values<ItemWindow>(head.items());
  const std::vector<std::uint32_t> times = reader.values<std::uint32_t>(head.items());
  change(head, windows);
  bytes = head.SerializeAsString();
  BlockWriter writer;
  writer.raw(begin, sizeof begin);
  writer.block(std::as_bytes(std::span(bytes)));
  writer.block(std::as_bytes(std::span(windows)));
  writer.block(std::as_bytes(std::span(times)));
  write_with_header(from, to, writer.bytes());
}

/// The positions of the first two chunks that contain all their rows.
std::pair<int, int> whole_chunks(const wire::SavedTable& head) {
  std::vector<int> found;
  for (int i = 0; i < head.chunks_size(); ++i)
    if (head.chunks(i).low() == 0 && head.chunks(i).high() == head.chunks(i).capacity())
      found.push_back(i);
  REQUIRE_GE(found.size(), 2);
  return {found[0], found[1]};
}

TEST_CASE("A checkpoint with two chunks at one place is refused, also by a table with a store") {
  const TemporaryFolder folder;
  Filled from(pixel_spec(2, 2), {.max_items = 60}, 30);
  save(from.table, folder / "table");
  write_changed(folder / "table", folder / "bad", [](wire::SavedTable& head, auto&) {
    const auto [first, second] = whole_chunks(head);
    head.mutable_chunks(second)->set_number(head.chunks(first).number());
  });
  TableConfig config = from.config;
  config.max_bytes = 1; // with a store, all chunks stay on disk
  for (const bool stores : {false, true}) {
    Table table(config, from.spec, 1);
    if (stores)
      table.spill_to(std::make_shared<SegmentStore>(SegmentStoreConfig{
          .folder = folder / "spill", .segment_bytes = 65'536, .max_disk_bytes = 1 << 20}));
    CHECK_THROWS_WITH_AS(table.load(folder / "bad", Table::ConfigChange::accept),
                         doctest::Contains("two chunks share one place"), std::runtime_error);
  }
}

TEST_CASE("A checkpoint with an item of more rows than any window has is refused") {
  const TemporaryFolder folder;
  Filled from(pixel_spec(2, 2), {.max_items = 60}, 30);
  save(from.table, folder / "table");
  const auto change = [](wire::SavedTable& head, std::vector<ItemWindow>& windows) {
    const auto [first, second] = whole_chunks(head); // they continue in each other for ever
    head.mutable_chunks(first)->set_next(static_cast<std::uint32_t>(second) + 1);
    head.mutable_chunks(second)->set_next(static_cast<std::uint32_t>(first) + 1);
    const auto item = std::find_if(windows.begin(), windows.end(),
                                   [chunk = static_cast<std::uint32_t>(first)](
                                       const ItemWindow& w) { return w.chunk == chunk; });
    REQUIRE(item != windows.end());
    item->rows = 0xffffffffU;
  };
  write_changed(folder / "table", folder / "bad", change);
  Table table(from.config, from.spec, 1);
  CHECK_THROWS_WITH_AS(table.load(folder / "bad"),
                       doctest::Contains("an item is outside its chunks"), std::runtime_error);
}

TEST_CASE("A checkpoint whose counters are negative or would overflow is refused") {
  const TemporaryFolder folder;
  Filled from(pixel_spec(2, 2), {.max_items = 60}, 30);
  save(from.table, folder / "table");
  const std::function<void(wire::SavedTable&)> changes[] = {
      [](wire::SavedTable& head) { head.set_sampled(-1); },
      [](wire::SavedTable& head) { head.set_limiter_inserted(INT64_MAX); },
      [](wire::SavedTable& head) { head.set_end(UINT64_MAX); },
      [](wire::SavedTable& head) { head.set_next_chunk(UINT64_MAX); }};
  for (const auto& change : changes) {
    write_changed(folder / "table", folder / "bad",
                  [&](wire::SavedTable& head, auto&) { change(head); });
    Table table(from.config, from.spec, 1);
    CHECK_THROWS_WITH_AS(table.load(folder / "bad"), doctest::Contains("its head makes no sense"),
                         std::runtime_error);
  }
}

TEST_CASE("A chunk that claims room for more rows than a checkpoint has allocates only its rows") {
  const TemporaryFolder folder;
  Filled from(pixel_spec(2, 2), {.max_items = 60}, 1);
  save(from.table, folder / "table");
  write_changed(folder / "table", folder / "roomy", [](wire::SavedTable& head, auto&) {
    REQUIRE_EQ(head.chunks_size(), 1);
    head.mutable_chunks(0)->set_capacity(1 << 24);
  });
  Table restored(from.config, from.spec, 1);
  restored.load(folder / "roomy");
  CHECK_LT(restored.stats().bytes, 1 << 16);
  CHECK(next_sample(restored, from.spec, 64) == next_sample(from.table, from.spec, 64));

  Table several({.max_bytes = 1 << 20}, from.spec, 99);
  for (const int id : {1, 2, 3, 4}) {
    Writer writer = transition_writer(from.spec, static_cast<std::uint64_t>(id), 12);
    Player player(from.spec, static_cast<std::uint64_t>(id));
    while (writer.pending_items() < 3)
      player.step(writer);
    several.insert(*writer.take());
  }
  save(several, folder / "several");
  write_changed(folder / "several", folder / "several_roomy", [](wire::SavedTable& head, auto&) {
    REQUIRE_EQ(head.chunks_size(), 4); // together they have more room than max_bytes
    for (wire::SavedChunk& chunk : *head.mutable_chunks())
      chunk.set_capacity(1 << 20);
  });
  Table again({.max_bytes = 1 << 20}, from.spec, 1);
  again.load(folder / "several_roomy");
  CHECK(next_sample(again, from.spec, 64) == next_sample(several, from.spec, 64));
}

TEST_CASE("A block that claims more bytes than zstd can unpack it to is refused") {
  BlockWriter writer;
  writer.block(std::vector<std::byte>(100));
  std::vector<std::byte> bytes = writer.bytes();
  bytes[3] = std::byte{1}; // 100 + 2^24
  BlockReader reader(bytes, "header");
  CHECK_THROWS_WITH_AS(reader.begin_block(UINT64_MAX), doctest::Contains("claims a block of"),
                       std::runtime_error);
}

TEST_CASE("A checkpoint of an earlier or later format is refused") {
  const TemporaryFolder folder;
  Filled from(pixel_spec(2, 2), {}, 30);
  save(from.table, folder / "table");
  std::vector<std::byte> header = header_of(folder / "table");
  for (const char version : {1, 9}) {
    header[8] = static_cast<std::byte>(version); // after the magic
    write_with_header(folder / "table", folder / "other", header);
    CHECK_THROWS_WITH_AS(from.table.load(folder / "other"),
                         doctest::Contains(version == 1 ? "saved by an earlier program"
                                                        : "saved by a later program"),
                         std::runtime_error);
  }
}

TEST_CASE("A checkpoint that cannot be written is reported with its folder") {
  const TemporaryFolder folder;
  Filled from(pixel_spec(2, 2), {}, 30);
  CHECK_THROWS_WITH_AS(save(from.table, folder / "no/such/folder"),
                       doctest::Contains("no/such/folder"), std::runtime_error);
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("A later checkpoint costs only what is new, even after a restoration") {
  const TemporaryFolder folder;
  Filled from(pixel_spec(3, 3), {.max_items = 3000}, 1000);
  save(from.table, folder / "1");
  const std::int64_t all = own_blobs(folder / "1");
  for (int i = 0; i < 50; ++i)
    from.add(from.table);
  save(from.table, folder / "2", folder / "1");
  CHECK_LT(own_blobs(folder / "2"), all / 10);
  Table restored(from.config, from.spec, 1);
  restored.load(folder / "2");
  fs::remove_all(folder / "1");
  for (int i = 0; i < 50; ++i)
    from.add(restored);
  save(restored, folder / "3", folder / "2");
  CHECK_LT(own_blobs(folder / "3"), all / 10);
  Table again(from.config, from.spec, 1);
  again.load(folder / "3");
  CHECK(next_sample(again, from.spec, 500) == next_sample(restored, from.spec, 500));
  // A checkpoint after a damaged one is written in full.
  write_bytes(folder / "3" / "manifest", "x");
  save(again, folder / "4", folder / "3");
  CHECK_EQ(shared_files(folder / "4"), 0);
  Table last(from.config, from.spec, 1);
  last.load(folder / "4");
  CHECK(next_sample(again, from.spec, 500) == next_sample(last, from.spec, 500));
}

TEST_CASE("A checkpoint holds the state at its snapshot, whatever the table does meanwhile") {
  const TemporaryFolder folder;
  Filled from(pixel_spec(3, 3), {.max_items = 300, .compression = Compression::lz4});
  save(from.table, folder / "before");
  const TableSnapshot snapshot = from.table.snapshot();
  std::thread writing([&] { write_checkpoint(snapshot, folder / "meanwhile", folder / "before"); });
  for (int i = 0; i < 400; ++i)
    from.add(from.table);
  writing.join();
  Table before(from.config, from.spec, 1);
  before.load(folder / "before");
  Table meanwhile(from.config, from.spec, 1);
  meanwhile.load(folder / "meanwhile");
  CHECK(next_sample(before, from.spec, 500) == next_sample(meanwhile, from.spec, 500));
}

} // namespace
} // namespace troupe::replay
