// Flipped bits, truncated files, foreign files and mutated ones.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "tests/replay/storage/checkpoint_contents.hpp"
#include "tests/text.hpp"

namespace troupe::replay {
namespace {

namespace fs = std::filesystem;

struct Small {
  Small() {
    write_contents(folder.path / "1", {}, some(0, 2, 40));
    write_contents(folder.path / "2", {}, some(0, 4, 40), {.segment_bytes = 200});
    for (const fs::path& file : files_in(folder.path / "2"))
      files[file] = read_text(file);
    REQUIRE_EQ(files.size(), 3); // two segments and the manifest
  }
  /// Checks that the newest checkpoint is reported as damaged (if `harmless`, it may also be read
  /// correctly), and that the one before it is valid.
  void check_damaged(bool harmless = false) const {
    if (damage_of(folder.path / "2").empty()) {
      REQUIRE(harmless);
      REQUIRE(contents_of(CheckpointReader(folder.path / "2")) == some(0, 4, 40));
    }
    REQUIRE_EQ(damage_of(folder.path / "1"), "");
  }
  StorageFolder folder;
  std::map<fs::path, std::string> files;
};

TEST_CASE(
    "Every flipped bit in a checkpoint is detected, and the previous checkpoint stays valid") {
  const Small small;
  for (const auto& [file, bytes] : small.files) {
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      write_bytes(file, flipped);
      small.check_damaged();
    }
    write_bytes(file, bytes);
  }
  CHECK_EQ(damage_of(small.folder.path / "2"), "");
}

TEST_CASE("A truncated or extended checkpoint is detected even by the quick check") {
  const Small small;
  const auto check_seen = [&] {
    small.check_damaged();
    REQUIRE_THROWS_AS(CheckpointReader(small.folder.path / "2"), StorageError);
  };
  for (const auto& [file, bytes] : small.files) {
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      write_bytes(file, bytes.substr(0, size));
      check_seen();
    }
    for (const char* tail : {"x", "0123456789012345678901234567890123456789"}) {
      write_bytes(file, bytes + std::string(tail));
      check_seen();
    }
    write_bytes(file, bytes);
  }
  CHECK_EQ(damage_of(small.folder.path / "2"), "");
}

TEST_CASE("Foreign files, other versions and misnamed segments are distinguished") {
  const Small small;
  const fs::path folder = small.folder.path / "2";
  const auto told = [&](const fs::path& file, const std::string& bytes) {
    write_bytes(file, bytes);
    const std::string damage = damage_of(folder);
    write_bytes(file, small.files.at(file));
    return damage;
  };
  const std::string page = "<html> a page of somebody's, longer than any head of ours is </html>";
  CHECK_NE(told(folder / "segment-1", page).find("not a segment"), std::string::npos);
  CHECK_NE(told(folder / "manifest", page).find("not the manifest"), std::string::npos);
  CHECK_NE(
      told(folder / "segment-1", small.files.at(folder / "segment-2")).find("is segment 2 under"),
      std::string::npos);
  std::string manifest = small.files.at(folder / "manifest");
  manifest[8] = 7;
  const auto body = std::as_bytes(std::span(manifest)).first(manifest.size() - 8);
  const std::uint64_t sum = checksum_of(body);
  std::memcpy(manifest.data() + body.size(), &sum, 8);
  CHECK_NE(told(folder / "manifest", manifest).find("version 7 of the format"), std::string::npos);
  fs::remove(folder / "segment-1");
  fs::create_directory(folder / "segment-1");
  CHECK_NE(damage_of(folder).find("is not a file"), std::string::npos);
}

TEST_CASE("Each inconsistency of a manifest is refused with its own message") {
  const CheckpointManifest good{
      3,
      {{1, 500}, {2, 500}},
      {{{1, 1, 0}, 0, {56, 100, 7}}, {{1, 2, 0}, 0, {180, 320, 7}}, {{2, 1, 0}, 1, {56, 0, 7}}},
      blob_of(1, 3)};
  const auto told = [&](auto&& change) {
    CheckpointManifest manifest = good;
    change(manifest);
    return error_of<StorageError>([&] { parse_manifest(encode(manifest), "m"); });
  };
  using Manifest = CheckpointManifest;
  CHECK(parse_manifest(encode(good), "m") == good);
  const std::string no_order = "m is damaged: its segments are out of order; use the checkpoint "
                               "before it";
  CHECK_EQ(told([](Manifest& m) { m.next_segment = 2; }), no_order);
  CHECK_EQ(told([](Manifest& m) { m.segments[1].id = 1; }), no_order);
  const auto names = [&](auto&& change, const char* what) {
    return told(change).find(what) != std::string::npos;
  };
  CHECK(names([](Manifest& m) { std::swap(m.blobs[0], m.blobs[1]); }, "blobs are out of order"));
  CHECK(names([](Manifest& m) { m.blobs[1].key = m.blobs[0].key; }, "blobs are out of order"));
  CHECK(names([](Manifest& m) { m.blobs[2].segment = 2; }, "in no segment"));
  CHECK(names([](Manifest& m) { m.blobs[0].place.offset = 55; }, "outside its segment"));
  CHECK(names([](Manifest& m) { m.blobs[1].place.size = 321; }, "outside its segment"));
  CHECK(names([](Manifest& m) { m.blobs[1].place.size = ~std::uint64_t{0}; }, "outside its"));
  CHECK(names([](Manifest& m) { m.blobs[1].place.offset = ~std::uint64_t{0}; }, "outside its"));
  CHECK(names([](Manifest& m) { m.blobs[0].place.size = 101; }, "two blobs overlap"));
}

std::string mutated(std::string bytes, env::Random& random) {
  for (std::uint64_t i = 1 + random.bits() % 4; i > 0 && !bytes.empty(); --i) {
    const std::size_t at = random.bits() % bytes.size();
    switch (random.bits() % 5) {
    case 0:
      bytes[at] = static_cast<char>(random.bits());
      break;
    case 1:
      bytes.erase(at, random.bits() % 60);
      break;
    case 2:
      bytes.insert(at, random.bits() % 60, static_cast<char>(random.bits()));
      break;
    case 3: { // a count or an offset
      const std::uint64_t number =
          (random.bits() % 2 == 0 ? ~std::uint64_t{0} : 64) - random.bits() % 64;
      std::memcpy(bytes.data() + at / 8 * 8, &number,
                  std::min<std::size_t>(8, bytes.size() - at / 8 * 8));
      break;
    }
    default:
      bytes[at] = static_cast<char>(bytes[at] + (random.bits() % 2 == 0 ? 1 : -1));
    }
  }
  return bytes;
}

// A manifest with a correct checksum passes the first check, so each of its numbers has to be
// validated separately.
TEST_CASE("A mutated manifest with a correct checksum is refused or consistent") {
  const Small small;
  const fs::path file = small.folder.path / "2" / "manifest";
  const std::string& good = small.files.at(file);
  env::Random random(11);
  int consistent = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = mutated(good.substr(0, good.size() - 8), random);
    const std::uint64_t sum = checksum_of(std::as_bytes(std::span(bytes)));
    bytes.append(reinterpret_cast<const char*>(&sum), 8);
    try {
      const CheckpointManifest manifest =
          parse_manifest(std::as_bytes(std::span(bytes)), "mutated");
      const Bytes again = encode(manifest);
      REQUIRE(std::equal(again.begin(), again.end(), std::as_bytes(std::span(bytes)).begin(),
                         std::as_bytes(std::span(bytes)).end()));
      ++consistent;
      if (bytes != good) {
        write_bytes(file, bytes);
        const std::string damage = damage_of(small.folder.path / "2");
        if (damage.empty()) // the caller interprets keys and the header
          REQUIRE_EQ(contents_of(CheckpointReader(small.folder.path / "2")).size(),
                     manifest.blobs.size());
      }
    } catch (const StorageError&) {
    }
  }
  CHECK_GT(consistent, 50);
}

TEST_CASE("Mutated segments and manifests are refused or harmless") {
  const Small small;
  env::Random random(12);
  for (int i = 0; i < 3000; ++i) {
    const auto& [file, bytes] =
        *std::next(small.files.begin(), static_cast<long>(random.bits() % small.files.size()));
    const std::string changed = mutated(bytes, random);
    write_bytes(file, changed);
    small.check_damaged(changed == bytes);
    write_bytes(file, bytes);
  }
}

} // namespace
} // namespace troupe::replay
