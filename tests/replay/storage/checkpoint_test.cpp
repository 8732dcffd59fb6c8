#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "tests/replay/storage/checkpoint_contents.hpp"

namespace troupe::replay {
namespace {

namespace fs = std::filesystem;

std::uint64_t inode(const fs::path& path) {
  struct stat status {};
  REQUIRE_EQ(::stat(path.c_str(), &status), 0);
  return status.st_ino;
}

/// Bytes of the files that are not shared with another folder by hard links.
std::uint64_t own_bytes(const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const fs::path& file : files_in(folder))
    bytes += fs::hard_link_count(file) == 1 ? fs::file_size(file) : 0;
  return bytes;
}

TEST_CASE("A checkpoint returns its header and every blob, and nothing else") {
  const StorageFolder folder;
  Contents contents = some(1, 20, 900);
  contents[{9, 9, 9}] = {};
  contents[{9, 9, 10}] = blob_of(1, 30'000); // larger than a segment
  write_contents(folder.path / "1", {}, contents, {.segment_bytes = 8192});
  const CheckpointReader reader(folder.path / "1");
  CHECK(contents_of(reader) == contents);
  CHECK(Bytes(reader.header().begin(), reader.header().end()) == kHeader);
  CHECK(reader.find({9, 9, 8}) == nullptr);
  reader.verify();
  CHECK_GT(reader.segments().size(), 2);
  Bytes small(1);
  CHECK_THROWS_AS(reader.read(*reader.find({9, 9, 10}), small), std::invalid_argument);
  write_contents(folder.path / "2", {}, {}); // an empty checkpoint
  CHECK(contents_of(CheckpointReader(folder.path / "2")).empty());
  CHECK_EQ(files_in(folder.path).size(), 2);
}

TEST_CASE("A checkpoint writes only what is new and the manifest") {
  const StorageFolder folder;
  Contents contents = some(0, 50, 20'000);
  write_contents(folder.path / "1", {}, contents);
  std::uint64_t fresh = SegmentFile::kHeadBytes;
  for (const auto& [key, bytes] : some(50, 5, 20'000)) {
    contents[key] = bytes;
    fresh += SegmentFile::kRecordBytes + bytes.size();
  }
  for (const auto& [key, bytes] : some(0, 5, 1))
    contents.erase(key);
  write_contents(folder.path / "2", folder.path / "1", contents);
  CHECK_EQ(own_bytes(folder.path / "2"), fresh + fs::file_size(folder.path / "2" / "manifest"));
  CHECK_EQ(inode(folder.path / "1" / "segment-1"), inode(folder.path / "2" / "segment-1"));
  CHECK(contents_of(CheckpointReader(folder.path / "2")) == contents);
}

TEST_CASE("Each checkpoint of a moving window is self-contained and stays small") {
  const StorageFolder folder;
  env::Random random(3);
  const CheckpointConfig config{.segment_bytes = 20'000, .max_segments = 6};
  Contents window;
  std::uint64_t next = 0;
  std::uint64_t fresh = 0;
  std::uint64_t written = 0;
  fs::path previous;
  std::map<std::uint64_t, Contents> kept; // checkpoints on disk
  for (std::uint64_t step = 1; step <= 150; ++step) {
    for (std::uint64_t i = random.bits() % 8; i > 0; --i) {
      const BlobKey key{next % 3, next, 0};
      window[key] = blob_of(next++, 100 + random.bits() % 2000);
      fresh += window[key].size();
    }
    while (window.size() > 60) { // mostly remove the oldest
      auto victim =
          std::min_element(window.begin(), window.end(),
                           [](const auto& a, const auto& b) { return a.first.low < b.first.low; });
      if (random.bits() % 4 == 0)
        victim = std::next(window.begin(), static_cast<long>(random.bits() % window.size()));
      window.erase(victim);
    }
    const fs::path now = folder.path / std::to_string(step);
    write_contents(now, previous, window, config);
    written += own_bytes(now) - fs::file_size(now / "manifest");
    kept[step] = window;
    previous = now;
    while (kept.size() > 3) { // remove any but the newest
      const auto gone =
          std::next(kept.begin(), static_cast<long>(random.bits() % (kept.size() - 1)));
      fs::remove_all(folder.path / std::to_string(gone->first));
      kept.erase(gone);
    }
    const CheckpointReader reader(now);
    std::uint64_t held = 0, wanted = 0;
    for (const CheckpointSegment& segment : reader.manifest().segments)
      held += segment.bytes;
    for (const auto& [key, bytes] : window)
      wanted += bytes.size();
    const std::uint64_t large = 2 * wanted / config.segment_bytes + 1; // not merged, and new ones
    CHECK_LE(reader.segments().size(), config.max_segments + large + 1);
    CHECK_LE(held, 2 * wanted + 2 * config.segment_bytes);
    for (const auto& [number, contents] : kept) {
      CHECK_EQ(damage_of(folder.path / std::to_string(number)), "");
      REQUIRE(contents_of(CheckpointReader(folder.path / std::to_string(number))) == contents);
    }
  }
  CHECK_LE(written,
           3 * fresh); // 2.1 in this run: segments of nine blobs are merged again and again
}

TEST_CASE("Blobs are written again and checked where hard links are not possible") {
  const StorageFolder folder;
  const Contents contents = some(0, 10, 500);
  write_contents(folder.path / "1", {}, contents);
  SUBCASE("The previous checkpoint was removed meanwhile") {
    CheckpointWriter writer(folder.path / "2", folder.path / "1");
    for (const auto& [key, bytes] : contents)
      REQUIRE(writer.keep(key));
    fs::remove_all(folder.path / "1");
    writer.commit(kHeader);
    CHECK(contents_of(CheckpointReader(folder.path / "2")) == contents);
    CHECK_EQ(damage_of(folder.path / "2"), "");
  }
  SUBCASE("The previous checkpoint is on another disk") {
    struct stat here {
    }, there{};
    if (::stat(folder.path.c_str(), &here) != 0 || ::stat(kMemoryFolder, &there) != 0
        || here.st_dev == there.st_dev) {
      MESSAGE("skipped: " << kMemoryFolder << " is no other file system");
    } else {
      const TemporaryFolder other(kMemoryFolder);
      write_contents(other / "2", folder.path / "1", contents);
      CHECK(contents_of(CheckpointReader(other / "2")) == contents);
    }
  }
  SUBCASE("Damage in the previous checkpoint is reported instead of copied") {
    const fs::path file = folder.path / "1" / "segment-1";
    std::string bytes = read_text(file);
    bytes[bytes.size() / 2] ^= 4;
    write_bytes(file, bytes);
    CHECK_THROWS_WITH_AS(
        write_contents(folder.path / "2", folder.path / "1", contents, {.max_segments = 0}),
        doctest::Contains("segment-1 is damaged"), StorageError);
    CHECK_EQ(files_in(folder.path).size(), 1);
  }
}

TEST_CASE("Mostly dead segments move, and so do the smallest of too many, within a limit") {
  const CheckpointConfig config{
      .segment_bytes = 120, .move_below = 0.5, .max_segments = 3, .max_moved_bytes = 100};
  const auto chosen = [&](std::vector<FormerSegment> segments) {
    return choose_segments_to_move(segments, config);
  };
  using Chosen = std::vector<bool>;
  CHECK(chosen({}) == Chosen{});
  CHECK(chosen({{100, 50}, {100, 49}, {100, 0}}) == Chosen{false, true, false});
  CHECK(chosen({{1000, 60}, {1000, 50}, {1000, 900}}) == Chosen{false, true, false}); // the limit
  CHECK(chosen({{40, 40}, {20, 20}, {30, 30}, {50, 50}, {60, 0}})
        == Chosen{false, true, false, false, false});
  CHECK(chosen({{100, 70}, {100, 80}, {100, 60}, {100, 90}, {100, 90}})
        == Chosen{false, false, false, false, false}); // merging large ones leaves as many
}

TEST_CASE("An uncommitted checkpoint leaves nothing, and a killed writer's leftovers are removed") {
  const StorageFolder folder;
  const Contents contents = some(0, 4, 100);
  {
    CheckpointWriter writer(folder.path / "1", {});
    writer.add({1, 1, 1}, blob_of(1, 100));
    CHECK_EQ(files_in(folder.path).size(), 1);
  }
  CHECK(files_in(folder.path).empty());
  fs::create_directory(folder.path / "1.partial");
  write_bytes(folder.path / "1.partial" / "segment-1", "half");
  write_bytes(folder.path / "1.partial" / "manifest.partial", "half");
  write_contents(folder.path / "1", {}, contents);
  CHECK(contents_of(CheckpointReader(folder.path / "1")) == contents);
  CHECK_THROWS_WITH_AS(write_contents(folder.path / "1", {}, contents),
                       doctest::Contains("exists already"), StorageError);
  fs::create_directory(folder.path / "2.partial");
  write_bytes(folder.path / "2.partial" / "thesis.tex", "of somebody");
  CHECK_THROWS_WITH_AS(write_contents(folder.path / "2", {}, contents),
                       doctest::Contains("thesis.tex"), StorageError);
  CHECK(fs::exists(folder.path / "2.partial" / "thesis.tex"));
  CHECK_THROWS_WITH_AS(write_contents(folder.path / "no" / "3", {}, contents),
                       doctest::Contains("no/3"), StorageError);
  CheckpointWriter twice(folder.path / "4", {});
  twice.add({1, 1, 1}, blob_of(1, 100));
  twice.add({1, 1, 1}, blob_of(1, 100));
  CHECK_THROWS_WITH_AS(twice.commit({}),
                       doctest::Contains("of chunk 1 are in the checkpoint twice"),
                       std::invalid_argument);
}

} // namespace
} // namespace troupe::replay
