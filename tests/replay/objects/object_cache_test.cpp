// The cache of downloaded objects, tested with moto's S3.
#include "replay/objects/object_cache.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "replay/objects/store_error.hpp"
#include "tests/replay/objects/moto.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::replay;
namespace fs = std::filesystem;

namespace {

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 1;
  for (char& c : text) {
    state = state * 1664525u + 1013904223u;
    c = static_cast<char>(state >> 24);
  }
  return text;
}

const ObjectAddress kData{.bucket = "bucket", .key = "my/data"};

/// A store with a folder of shards, and a cache.
struct Place {
  TemporaryFolder folder;
  Moto moto{folder};
  std::vector<std::string> told{};

  void put(const std::string& name, const std::string& text, const ObjectAddress& to = kData) {
    ObjectStore(moto.options()).put_bytes(below(to, name), std::as_bytes(std::span(text)));
  }
  CacheOptions cache(std::uint64_t most_bytes = 1 << 30) {
    return {.folder = folder / "cache",
            .most_bytes = most_bytes,
            .stuck = std::chrono::seconds(0),
            .tell = [this](const std::string& line) { told.push_back(line); }};
  }
  CachedFolder open(const CacheOptions& options, const ObjectAddress& from = kData) {
    ObjectStore store(moto.options());
    return cached_folder(moto.options(), from, folder_objects(store, from), options);
  }
  std::string refusal(const CacheOptions& options, const ObjectAddress& from = kData) {
    return error_of<StoreError>([&] { open(options, from); });
  }
  std::size_t requests() const { return count(read_text(folder / "errors.log"), "GET /bucket/my"); }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1))
      ++found;
    return found;
  }
};

} // namespace

TEST_CASE("Objects are fetched once, and again if a copy is damaged") {
  Place place;
  if (!place.moto.runs())
    return;
  place.put("a.tar", pattern(1000));
  place.put("deep/b.tar", pattern(2000));
  place.put("empty", "");
  fs::path path;
  {
    const auto copy = place.open(place.cache());
    path = copy.path();
    CHECK(read_text(path / "a.tar") == pattern(1000));
    CHECK(read_text(path / "deep/b.tar") == pattern(2000));
    CHECK(fs::file_size(path / "empty") == 0);
    CHECK(fs::exists(place.folder / "cache"));
  }
  const auto lines = place.told.size();
  const auto requests = place.requests();
  CHECK(requests == 2);
  CHECK(place.open(place.cache()).path() == path);
  CHECK(place.told.size() == lines);
  CHECK(place.requests() == requests);

  std::fstream(path / "a.tar", std::ios::in | std::ios::out | std::ios::binary) << "damage";
  fs::last_write_time(path / "a.tar", fs::file_time_type::clock::now() + std::chrono::hours(1));
  fs::resize_file(path / "deep/b.tar", 100);
  CHECK(place.open(place.cache()).path() == path);
  CHECK(read_text(path / "a.tar") == pattern(1000));
  CHECK(read_text(path / "deep/b.tar") == pattern(2000));
  CHECK(has(place.told.at(lines), "2 files of " + path.string()));
  CHECK(place.requests() == requests + 2);

  fs::last_write_time(path / "a.tar", fs::file_time_type::clock::now() + std::chrono::hours(2));
  CHECK(place.open(place.cache()).path() == path); // the content is the same
  CHECK(place.requests() == requests + 2);

  place.put("a.tar", pattern(999)); // another version, in a new copy
  CHECK(read_text(place.open(place.cache()).path() / "a.tar") == pattern(999));
  CHECK(read_text(path / "a.tar") == pattern(1000));
}

TEST_CASE("A killed fetch resumes where it stopped, and a damaged remainder is fetched again") {
  Place place;
  if (!place.moto.runs())
    return;
  const std::string large = pattern(std::size_t{11} << 20);
  place.put("a.tar", large);
  place.put("b.tar", pattern(1000));
  fs::path path;
  {
    const auto copy = place.open(place.cache());
    path = copy.path();
  }
  const fs::path partial = path.parent_path() / ("." + path.filename().string() + ".partial");
  const auto half_done = [&](std::size_t damaged) {
    fs::rename(path, partial);
    fs::resize_file(partial / "a.tar", std::size_t{5} << 20);
    if (damaged > 0)
      std::fstream(partial / "a.tar", std::ios::in | std::ios::out | std::ios::binary) << "damage";
  };
  half_done(0);
  const auto before = place.requests();
  CHECK(place.open(place.cache()).path() == path);
  CHECK(read_text(path / "a.tar") == large);
  CHECK(place.requests() == before + 2); // two of a.tar's three parts; b.tar is complete
  half_done(1);
  CHECK(place.open(place.cache()).path() == path);
  CHECK(read_text(path / "a.tar") == large);
}

TEST_CASE("A fetch that verifies complete files of a killed one shows progress") {
  Place place;
  if (!place.moto.runs())
    return;
  for (const char* name : {"a.tar", "b.tar", "c.tar", "d.tar"})
    place.put(name, pattern(1000));
  const fs::path path = place.open(place.cache()).path();
  const auto hidden = [&](const std::string& ending) {
    return path.parent_path() / ("." + path.filename().string() + ending);
  };
  fs::rename(path, hidden(".partial"));
  const auto old = fs::last_write_time(hidden(".lock")) - std::chrono::hours(1);
  std::vector<bool> moved;
  auto options = place.cache();
  options.tell = [&](const std::string& line) {
    if (has(line, " GB of ")) // after each file but the last
      moved.push_back(fs::last_write_time(hidden(".lock")) > old);
    fs::last_write_time(hidden(".lock"), old);
  };
  const auto before = place.requests();
  CHECK(place.open(options).path() == path);
  CHECK(place.requests() == before);
  CHECK(moved == std::vector<bool>{true, true, true});
}

TEST_CASE("The oldest unused copy makes room, and an object that cannot fit is refused before it "
          "is fetched") {
  Place place;
  if (!place.moto.runs())
    return;
  const ObjectAddress second{.bucket = "bucket", .key = "my/second"},
      third{.bucket = "bucket", .key = "my/third"};
  place.put("a.tar", pattern(600));
  place.put("a.tar", pattern(300), second);
  place.put("a.tar", pattern(500), third);
  fs::path first_path, second_path;
  {
    const auto first = place.open(place.cache(1000));
    const auto other = place.open(place.cache(1000), second);
    first_path = first.path();
    second_path = other.path();
    const auto refused = place.refusal(place.cache(1000), third);
    CHECK(has(refused, "data.cache_gigabytes is"));
    CHECK(has(refused, "s3://bucket/my/third"));
    CHECK(has(refused, "raise it"));
    CHECK(fs::exists(first_path));
  }
  CHECK(has(place.refusal(place.cache(400), third), "raise it"));
  CHECK(fs::exists(first_path)); // nothing is evicted for what cannot fit
  place.open(place.cache(1000), third);
  CHECK(!fs::exists(first_path));
  CHECK(fs::exists(second_path));
}

TEST_CASE("Processes that open the same copy concurrently share one fetch") {
  Place place;
  if (!place.moto.runs())
    return;
  place.put("a.tar", pattern(std::size_t{11} << 20));
  auto options = place.cache();
  options.stuck = std::chrono::seconds(60);
  options.tell = {};
  std::vector<fs::path> paths(4);
  {
    std::vector<std::jthread> others; // flock() treats two open files as it would two processes
    for (auto& path : paths)
      others.emplace_back([&] { path = place.open(options).path(); });
  }
  for (const auto& path : paths)
    CHECK(path == paths[0]);
  CHECK(place.requests() == 3);
}

TEST_CASE("A damaged copy that another process uses is not replaced") {
  Place place;
  if (!place.moto.runs())
    return;
  place.put("a.tar", pattern(1000));
  const auto copy = place.open(place.cache());
  fs::resize_file(copy.path() / "a.tar", 10);
  CHECK(has(place.refusal(place.cache()), "stop that process, then start again"));
  CHECK(fs::file_size(copy.path() / "a.tar") == 10);
}

TEST_CASE("A missing object is reported with its address and status") {
  Place place;
  if (!place.moto.runs())
    return;
  place.put("a.tar", pattern(1000));
  ObjectStore store(place.moto.options());
  const auto objects = folder_objects(store, kData);
  store.remove(below(kData, "a.tar"));
  CHECK_THROWS_WITH_AS(cached_folder(place.moto.options(), kData, objects, place.cache()),
                       doctest::Contains("s3://bucket/my/data/a.tar got 404"), StoreError);
  auto replaced = objects;
  place.put("a.tar", pattern(999));
  CHECK_THROWS_WITH_AS(cached_folder(place.moto.options(), kData, replaced, place.cache()),
                       doctest::Contains("replaced meanwhile"), StoreError);
}
