#include <filesystem>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>

#include "replay/table.hpp"
#include "tests/replay/episodes.hpp"

namespace troupe::replay {
namespace {

namespace fs = std::filesystem;

struct Folder {
  explicit Folder(const std::string& name)
      : path(fs::path(TROUPE_BINARY_DIR) / ("table_file_test_" + name)) {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
  fs::path path;
};

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

struct Filled {
  explicit Filled(const TransitionSpec& s, const TableConfig& c, int insertions = 120)
      : spec(s), config(c), writer(s, 5, 12), player(s, 2), table(c, s, 99) {
    for (int i = 0; i < insertions; ++i)
      add(table);
    std::vector<Item> items;
    table.sample(33, items);
  }
  void add(Table& to) {
    while (writer.pending_items() < 3)
      player.step(writer);
    to.insert(*writer.take());
  }
  TransitionSpec spec;
  TableConfig config;
  TransitionWriter writer;
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

TEST_CASE("a saved table goes on exactly: contents, counters, duplicates and the next samples") {
  const Folder folder("round_trip");
  Filled from(pixel_spec(3, 3),
              {.max_items = 250, .limiter = {.min_items = 10, .samples_per_insert = 2}});
  from.table.save(folder.file("table"));
  Table restored(from.config, from.spec, 1);
  restored.load(folder.file("table"));
  CHECK(restored.stats() == from.table.stats());
  CHECK_EQ(restored.can_insert(), from.table.can_insert());
  CHECK_EQ(restored.why_blocked(64), from.table.why_blocked(64));
  for (int i = 0; i < 5; ++i)
    CHECK(next_sample(restored, from.spec, 64) == next_sample(from.table, from.spec, 64));
  restored.save(folder.file("again"));
  from.table.save(folder.file("table"));
  CHECK_EQ(read(folder.file("again")), read(folder.file("table")));
  // And it takes what comes next, once.
  while (from.writer.pending_items() < 3)
    from.player.step(from.writer);
  const InsertionPtr made = from.writer.take();
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

TEST_CASE("an empty table and one of a single item can be saved") {
  const Folder folder("small");
  for (const int insertions : {0, 1}) {
    Filled from(pixel_spec(1, 1), {}, insertions);
    from.table.save(folder.file("table"));
    Table restored({}, from.spec, 1);
    restored.load(folder.file("table"));
    CHECK(restored.stats() == from.table.stats());
    CHECK(next_sample(restored, from.spec, 8) == next_sample(from.table, from.spec, 8));
  }
}

TEST_CASE("other transitions and another configuration are refused with the difference") {
  const Folder folder("differences");
  Filled from(pixel_spec(3, 3), {.max_items = 250, .limiter = {.samples_per_insert = 2}});
  from.table.save(folder.file("table"));
  Table other_spec(from.config, pixel_spec(3, 4), 1);
  CHECK_THROWS_WITH_AS(other_spec.load(folder.file("table")), doctest::Contains("n_step 4"),
                       std::runtime_error);
  Table other_config({.max_items = 100, .limiter = {.samples_per_insert = 8}}, from.spec, 1);
  CHECK_THROWS_WITH_AS(other_config.load(folder.file("table")),
                       doctest::Contains("replay.max_items was 250 and is 100, "
                                         "replay.samples_per_insert was 2 and is 8"),
                       std::runtime_error);
  CHECK_EQ(other_config.stats().items, 0);
}

TEST_CASE("a configuration changed with consent applies, and the limiter does not block for ever") {
  const Folder folder("change");
  Filled from(pixel_spec(3, 3),
              {.max_items = 250, .limiter = {.samples_per_insert = 0.5, .error_buffer = 5}});
  from.table.save(folder.file("table"));
  for (const double ratio : {0.01, 1000.0}) {
    Table changed(
        {.max_items = 100, .limiter = {.samples_per_insert = ratio, .error_buffer = 2000}},
        from.spec, 1);
    changed.load(folder.file("table"), Table::ConfigChange::accept);
    CHECK_EQ(changed.stats().items, 100);
    CHECK(changed.can_insert());
    CHECK(changed.can_sample(64));
    const Batch batch = next_sample(changed, from.spec, 64);
    for (std::size_t i = 0; i < batch.rows; ++i)
      from.player.check_row(batch, i);
  }
}

TEST_CASE("a file that is missing, truncated, damaged or foreign is refused and nothing changes") {
  const Folder folder("damage");
  Filled from(pixel_spec(2, 2), {.max_items = 60}, 30);
  from.table.save(folder.file("table"));
  const std::string whole = read(folder.file("table"));
  const auto refused = [&](const std::string& bytes) {
    write(folder.file("bad"), bytes);
    CHECK_THROWS_WITH_AS(from.table.load(folder.file("bad")), doctest::Contains("bad"),
                         std::runtime_error);
  };
  const TableStats before = from.table.stats();
  CHECK_THROWS_AS(from.table.load(folder.file("absent")), std::runtime_error);
  refused("");
  refused("PK\x03\x04 something else entirely");
  refused(whole + "x");
  for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 100)
    refused(whole.substr(0, size));
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    damaged[random() % damaged.size()] ^= static_cast<char>(1U << random() % 8);
    write(folder.file("bad"), damaged);
    try { // a flip in a part that zstd ignores may pass; then nothing may differ
      Table table(from.config, from.spec, 1);
      table.load(folder.file("bad"));
      Table same(from.config, from.spec, 1);
      same.load(folder.file("table"));
      CHECK(next_sample(table, from.spec, 64) == next_sample(same, from.spec, 64));
    } catch (const std::runtime_error&) {
    }
  }
  for (int i = 0; i < 200; ++i) { // magic, version, sizes, zstd's magic
    std::string damaged = whole;
    damaged[static_cast<std::size_t>(i) % 36] ^= static_cast<char>(1U << random() % 8);
    refused(damaged);
  }
  CHECK(from.table.stats() == before);
}

TEST_CASE("a file of an earlier or later format is refused in words") {
  const Folder folder("versions");
  Filled from(pixel_spec(2, 2), {}, 30);
  from.table.save(folder.file("table"));
  std::string bytes = read(folder.file("table"));
  for (const char version : {1, 9}) {
    bytes[8] = version; // behind the magic
    write(folder.file("table"), bytes);
    CHECK_THROWS_WITH_AS(from.table.load(folder.file("table")),
                         doctest::Contains(version == 1 ? "saved by an earlier program"
                                                        : "saved by a later program"),
                         std::runtime_error);
  }
}

TEST_CASE("a save that cannot be written names the file and leaves the former one") {
  const Folder folder("unwritable");
  Filled from(pixel_spec(2, 2), {}, 30);
  CHECK_THROWS_WITH_AS(from.table.save(folder.file("no/such/folder")),
                       doctest::Contains("no/such/folder"), std::runtime_error);
  CHECK_THROWS_AS(from.table.save("/dev/full/table"), std::runtime_error);
  CHECK(fs::is_empty(folder.path));
}

} // namespace
} // namespace troupe::replay
