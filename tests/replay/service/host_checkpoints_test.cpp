#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "replay/service/host_checkpoints.hpp"
#include "replay/storage/storage_error.hpp"
#include "tests/replay/storage/storage_faults.hpp"
#include "tests/replay/table/saved_table.hpp"
#include "tests/replay/windows.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::replay {
namespace {

namespace fs = std::filesystem;

/// The first `count` of two tables.
std::vector<HostedTable> tables_of(std::int64_t max_items = 100, int count = 2) {
  std::vector<HostedTable> tables{
      {.name = "states", .config = {.max_items = max_items}, .signature = kSignature, .seed = 1},
      {.name = "../a b", .config = {.max_items = max_items}, .signature = kSignature, .seed = 2}};
  tables.erase(tables.begin() + count, tables.end());
  return tables;
}

/// A host with its checkpoints, and the messages of both.
struct Served {
  explicit Served(const fs::path& folder, std::chrono::milliseconds period = {},
                  std::int64_t max_items = 100, int count = 2)
      : tables(tables_of(max_items, count)),
        checkpoints(tables, {.folder = folder,
                             .period = period,
                             .log =
                                 [this](const std::string& text) {
                                   const std::scoped_lock lock(mutex);
                                   said += text + "\n";
                                 }}),
        host(context, tables,
             {.restore = [this](std::size_t table,
                                Table& into) { checkpoints.restore(table, into); }}),
        writing(checkpoints.start(host)) {}
  void add(std::size_t table, int items) {
    host.with_table(
        [&](Table& into) {
          for (int i = 0; i < items; ++i)
            into.insert(*source.next(1, 1));
        },
        table);
  }
  std::vector<std::uint64_t> keys(std::size_t table) {
    std::vector<std::uint64_t> all;
    host.with_table(
        [&](Table& from) {
          for (std::int64_t key = 0; key < from.stats().inserted; ++key)
            if (from.contains(static_cast<std::uint64_t>(key)))
              all.push_back(static_cast<std::uint64_t>(key));
        },
        table);
    return all;
  }
  std::string log() {
    const std::scoped_lock lock(mutex);
    return said;
  }
  std::mutex mutex;
  std::string said;
  WindowSource source{1, 3, 30, 5};
  std::vector<HostedTable> tables;
  env::wire::Context context;
  HostCheckpoints checkpoints;
  ShardHost host;
  std::jthread writing;
};

TEST_CASE(
    "A restarted host restores all tables of its newest checkpoint and continues its numbering") {
  const TemporaryFolder folder;
  std::vector<std::uint64_t> keys;
  {
    Served served(folder / "checkpoints");
    CHECK_EQ(served.checkpoints.restored(), 0);
    served.add(0, 150);
    served.add(1, 20);
    for (std::uint64_t number = 1; number <= 4; ++number) {
      CHECK_EQ(served.checkpoints.write(served.host), number);
      served.add(0, 3);
    }
    keys = served.keys(0);
  }
  CHECK_EQ(files_in(folder / "checkpoints").size(), 2); // the newest two
  Served again(folder / "checkpoints", {}, 80);
  CHECK_EQ(again.checkpoints.restored(), 4);
  CHECK(again.log().find("replay.max_items was 100 and is 80") != std::string::npos);
  keys.resize(keys.size() - 3); // inserted after the checkpoint
  keys.erase(keys.begin(), keys.end() - 80);
  CHECK((again.keys(0) == keys));
  CHECK_EQ(again.keys(1).size(), 20);
  CHECK_EQ(again.checkpoints.write(again.host), 5);
}

TEST_CASE("A host writes every sixteenth checkpoint without links to an earlier one") {
  const TemporaryFolder folder;
  for (const std::uint64_t first :
       {std::uint64_t{1}, std::uint64_t{11}}) { // continues after a restart
    Served served(folder / "checkpoints");
    if (first == 1)
      for (const std::size_t table : {std::size_t{0}, std::size_t{1}})
        served.add(table, 20);
    for (std::uint64_t number = first; number < first + 10; ++number) {
      CAPTURE(number);
      REQUIRE_EQ(served.checkpoints.write(served.host), number);
      const bool links = number != 1 && number % 16 != 0;
      CHECK_EQ(shared_files(folder / "checkpoints" / std::to_string(number)) > 0, links);
    }
  }
  CHECK_EQ(Served(folder / "checkpoints").checkpoints.restored(), 20);
}

TEST_CASE("A new checkpoint's name is flushed to disk before an old checkpoint is removed") {
  const TemporaryFolder folder;
  Served served(folder / "checkpoints");
  served.add(0, 50);
  served.checkpoints.write(served.host);
  served.checkpoints.write(served.host);
  const int flushes = flushes_before_removal([&] { // of the first; two are kept
    served.checkpoints.write(served.host);
    return 0;
  });
  // One fsync for the folder above it; -1 where calls cannot be traced.
  CHECK_MESSAGE((flushes == -1 || flushes == 1), flushes);
}

TEST_CASE(
    "A checkpoint that is damaged or lacks a table is skipped in favour of the previous one") {
  for (const bool damaged : {true, false}) {
    const TemporaryFolder folder;
    {
      Served served(folder / "checkpoints");
      served.add(0, 50);
      served.add(1, 20);
      served.checkpoints.write(served.host);
      served.add(1, 1);
      served.checkpoints.write(served.host);
    }
    const fs::path newest = folder / "checkpoints" / "2";
    REQUIRE(fs::exists(newest / "table-states"));
    if (damaged)
      write_bytes(newest / "table-states" / "manifest", "x");
    else
      fs::remove_all(newest / "table-%2e%2e%2fa%20b");
    Served again(folder / "checkpoints");
    CHECK_EQ(again.checkpoints.restored(), 1);
    CHECK_EQ(again.keys(1).size(), 20);
    CHECK(again.log().find("is skipped") != std::string::npos);
    CHECK_EQ(again.checkpoints.write(again.host), 3);
  }
}

TEST_CASE("A checkpoint that fails at its second table leaves nothing behind") {
  const TemporaryFolder folder;
  Served served(folder / "checkpoints");
  served.add(0, 50);
  REQUIRE_EQ(served.checkpoints.write(served.host), 1);
  const fs::path failed = folder / "checkpoints" / "2.partial";
  fs::create_directories(failed / "table-%2e%2e%2fa%20b"); // in the way of the second table
  CHECK_THROWS_AS(served.checkpoints.write(served.host), StorageError);
  CHECK_EQ(files_in(folder / "checkpoints").size(), 1);
  CHECK_EQ(served.checkpoints.write(served.host), 3);
}

TEST_CASE("A host with an additional table restores the others and keeps their checkpoints") {
  const TemporaryFolder folder;
  const fs::path root = folder / "checkpoints";
  {
    Served one(root, {}, 100, 1);
    one.add(0, 20);
    one.checkpoints.write(one.host);
    one.checkpoints.write(one.host);
  }
  {
    Served two(root);
    CHECK_EQ(two.checkpoints.restored(), 2);
    CHECK_EQ(two.keys(0).size(), 20);
    CHECK_EQ(two.keys(1).size(), 0);
    CHECK(two.log().find("2 has no table-%2e%2e%2fa%20b: that table starts empty")
          != std::string::npos);
    for (std::uint64_t number = 3; number <= 5; ++number)
      CHECK_EQ(two.checkpoints.write(two.host), number);
  }
  CHECK(fs::exists(root / "1" / "table-states"));
  CHECK(fs::exists(root / "2" / "table-states"));
  CHECK_FALSE(fs::exists(root / "3")); // of both tables the newest two are kept
  CHECK_EQ(Served(root).checkpoints.restored(), 5);
}

TEST_CASE("A host with fewer tables keeps the checkpoints that contain the others") {
  const TemporaryFolder folder;
  const fs::path root = folder / "checkpoints";
  {
    Served two(root);
    two.add(1, 20);
    two.checkpoints.write(two.host);
  }
  Served one(root, {}, 100, 1);
  for (std::uint64_t number = 2; number <= 5; ++number)
    CHECK_EQ(one.checkpoints.write(one.host), number);
  CHECK(fs::exists(root / "1" / "table-%2e%2e%2fa%20b"));
  CHECK_FALSE(fs::exists(root / "3"));
}

TEST_CASE("A folder whose checkpoints have none of the tables is refused with their names") {
  const TemporaryFolder folder;
  {
    Served served(folder / "checkpoints");
    served.checkpoints.write(served.host);
  }
  std::vector<HostedTable> renamed = tables_of();
  renamed.resize(1);
  renamed[0].name = "stats";
  CHECK_THROWS_WITH_AS(HostCheckpoints(renamed, {.folder = folder / "checkpoints"}),
                       doctest::Contains("has only other tables, not table-stats"), StorageError);
  CHECK_EQ(Served(folder / "checkpoints").checkpoints.restored(), 1);
}

TEST_CASE("A host does not start empty if its only checkpoint is damaged") {
  const TemporaryFolder folder;
  {
    Served served(folder / "checkpoints");
    served.checkpoints.write(served.host);
  }
  write_bytes(folder / "checkpoints" / "1" / "table-states" / "manifest", "x");
  CHECK_THROWS_WITH_AS(HostCheckpoints(tables_of(), {.folder = folder / "checkpoints"}),
                       doctest::Contains("can be restored"), StorageError);
}

TEST_CASE("A checkpoint that a killed process was writing is removed at the next start") {
  const TemporaryFolder folder;
  const fs::path killed = folder / "checkpoints" / "7.partial";
  fs::create_directories(killed / "table-states");
  fs::create_directories(folder / "checkpoints" / "notes.partial");
  const Served served(folder / "checkpoints");
  CHECK_FALSE(fs::exists(killed));
  CHECK(fs::exists(folder / "checkpoints" / "notes.partial"));
}

TEST_CASE("Checkpoints are written every period, and a failure is logged") {
  const TemporaryFolder folder;
  const fs::path root = folder / "checkpoints";
  Served served(root, std::chrono::milliseconds(5));
  served.add(0, 10);
  while (checkpoints_in(root).empty())
    std::this_thread::yield();
  fs::rename(root, folder / "away");
  std::ofstream(root) << "a file";
  while (served.log().find("no checkpoint was written") == std::string::npos)
    std::this_thread::yield();
  served.add(0, 1); // it still serves
  CHECK_EQ(served.host.stats().items, 11);
  fs::remove(root);
  fs::rename(folder / "away", root);
  const auto newest = checkpoints_in(root)[0];
  while (checkpoints_in(root)[0] <= newest)
    std::this_thread::yield();
}

TEST_CASE("A folder that another host uses is refused with an explanation") {
  const TemporaryFolder folder;
  const Served served(folder / "checkpoints");
  CHECK_THROWS_WITH_AS(HostCheckpoints(tables_of(), {.folder = folder / "checkpoints"}),
                       doctest::Contains("give each process its own"), StorageError);
}

TEST_CASE("A host logs a full disk with the number of failed spills and the reason") {
  const TemporaryFolder folder;
  std::vector<HostedTable> tables = tables_of(1'000'000);
  tables.resize(1);
  tables[0].config.max_bytes = 50'000;
  tables[0].spill = {.folder = folder / "spill", .segment_bytes = 4096, .max_disk_bytes = 40'000};
  std::mutex mutex;
  std::string said;
  env::wire::Context context;
  ShardHost host(context, tables, {.log = [&](const std::string& text) {
                   const std::scoped_lock lock(mutex);
                   said += text + "\n";
                 }});
  WindowSource source(1, 3, 30, 5);
  host.with_table([&](Table& table) {
    for (int i = 0; i < 3000; ++i)
      table.insert(*source.next(1, 1));
  });
  CHECK_GT(host.stats().failed_spills, 0);
  CHECK_LT(host.stats().items, 3000);
  const auto log = [&] {
    const std::scoped_lock lock(mutex);
    return said;
  };
  while (log().empty())
    std::this_thread::yield();
  CHECK(log().find("could not be written to disk") != std::string::npos);
  CHECK(log().find(std::to_string(host.stats().failed_spills) + " chunks") != std::string::npos);
  CHECK(log().find("max_disk_bytes") != std::string::npos);
}

TEST_CASE("Only folders whose name is a number as we write it are checkpoints") {
  const TemporaryFolder folder;
  for (const char* name : {"7", "10", "007", "8.partial", "notes"})
    fs::create_directory(folder / name);
  CHECK(checkpoints_in(folder.path()) == std::vector<std::uint64_t>{10, 7});
}

} // namespace
} // namespace troupe::replay
