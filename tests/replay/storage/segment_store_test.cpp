#include "replay/storage/segment_store.hpp"

#include <condition_variable>
#include <deque>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "replay/storage/storage_error.hpp"
#include "tests/replay/storage/stored_blobs.hpp"

namespace troupe::replay {
namespace {

namespace fs = std::filesystem;

TEST_CASE("A folder of blobs shows no files, and written bytes are counted") {
  const StorageFolder folder;
  SegmentStore store({folder.path / "deep" / "spill", 4096, 1 << 20});
  const BlobRef ref = store.append(blob_of(1, 10'000));
  CHECK(files_in(folder.path / "deep" / "spill").empty());
  CHECK_EQ(store.stats().disk_bytes, kHead + kRecord + 10'000);
  CHECK(read_all(store, ref) == blob_of(1, 10'000));
}

TEST_CASE("A file's checksum, read in blocks, equals that of its bytes") {
  const StorageFolder folder;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{1} << 20, (std::size_t{5} << 19) + 3}) {
    const std::vector<std::byte> blob = blob_of(bytes, bytes);
    std::ofstream(folder.path / "file", std::ios::binary)
        .write(reinterpret_cast<const char*>(blob.data()), static_cast<std::streamsize>(bytes));
    CHECK_EQ(checksum_of_file(folder.path / "file"), checksum_of(blob));
  }
}

TEST_CASE(
    "A full store refuses a blob with its sizes, loses nothing and has room after a release") {
  const StorageFolder folder;
  SegmentStore store({folder.path, 4096, 16 << 10});
  std::vector<BlobRef> refs;
  for (int i = 0; i < 6; ++i)
    refs.push_back(store.append(blob_of(static_cast<std::uint64_t>(i), 2000)));
  CHECK_THROWS_WITH_AS(
      store.append(blob_of(9, 2000)),
      doctest::Contains("max_disk_bytes is 16384, of which 12240 are taken (96 by"), StorageError);
  for (std::size_t i = 0; i < refs.size(); ++i)
    CHECK(read_all(store, refs[i]) == blob_of(i, 2000));
  store.release(refs[0]);
  store.release(refs[1]); // removes its segment
  CHECK(read_all(store, store.append(blob_of(9, 2000))) == blob_of(9, 2000));
}

TEST_CASE("Compaction alone makes room in a full store of half-dead segments") {
  const StorageFolder folder;
  SegmentStore store({folder.path, 8192, 64 << 10, 0.6});
  std::vector<BlobRef> refs;
  CHECK_THROWS_AS(
      [&] {
        for (;;)
          refs.push_back(store.append(blob_of(refs.size(), 1000)));
      }(),
      StorageError);
  for (std::size_t i = 0; i < refs.size(); i += 2)
    store.release(refs[i]);
  CHECK_THROWS_AS(store.append(blob_of(0, 1000)), StorageError);
  const std::uint64_t before = store.stats().disk_bytes;
  for (;;) {
    const std::vector<BlobMove> moves = store.compact(3000);
    if (moves.empty())
      break;
    CHECK_LE(moves.size(), 3); // bounded work
    for (const BlobMove& move : moves) {
      CHECK(read_all(store, move.to) == read_all(store, move.from));
      store.release(move.from);
    }
  }
  CHECK_LT(store.stats().disk_bytes, before * 2 / 3);
  CHECK_LE(store.stats().disk_bytes, store.config().max_disk_bytes);
  store.append(blob_of(0, 1000));
}

TEST_CASE("Invalid configurations and buffers of the wrong size are refused") {
  const StorageFolder folder;
  CHECK_THROWS_WITH_AS(SegmentStore({folder.path, 100, 1 << 20}),
                       doctest::Contains("segment_bytes is 100"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(SegmentStore({folder.path, 1 << 20, 1 << 20}),
                       doctest::Contains("max_disk_bytes is 1048576"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(SegmentStore({folder.path, 4096, 1 << 30}),
                       doctest::Contains("4096 open files"), std::invalid_argument);
  CHECK_EQ(SegmentStore({folder.path, 0, 1 << 20}).config().segment_bytes, 1 << 18);
  CHECK_EQ(SegmentStore({folder.path}).config().segment_bytes, 256 << 20);
  CHECK_THROWS_WITH_AS(SegmentStore({folder.path, 4096, 1 << 20, 1.0}),
                       doctest::Contains("compact_below"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(SegmentStore(SegmentStoreConfig{}), doctest::Contains("folder"),
                       std::invalid_argument);
  write_bytes(folder.path / "file", "");
  CHECK_THROWS_WITH_AS(SegmentStore({folder.path / "file", 4096, 1 << 20}),
                       doctest::Contains("file"), StorageError);
  SegmentStore store({folder.path, 4096, 1 << 20});
  const BlobRef ref = store.append(blob_of(1, 10));
  Bytes small(9);
  CHECK_THROWS_WITH_AS(store.read(ref, small), doctest::Contains("buffer of 9"),
                       std::invalid_argument);
  SegmentStore other({folder.path, 4096, 1 << 20});
  CHECK_THROWS_AS(other.release(ref), std::invalid_argument);
}

/// Opens the store's unnamed file for writing.
int open_unnamed_file(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = fs::read_symlink(entry.path(), error).string();
    if (target.starts_with(fs::canonical(folder).string() + "/"))
      return ::open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
  }
  return -1;
}

TEST_CASE("No flipped bit on disk makes a blob read wrong, and a damaged blob is reported with its "
          "offset") {
  const StorageFolder folder;
  SegmentStore store({folder.path, 4096, 1 << 20});
  const std::vector<Bytes> blobs{blob_of(1, 100), blob_of(2, 1), {}, blob_of(3, 177)};
  std::vector<BlobRef> refs;
  for (const Bytes& blob : blobs)
    refs.push_back(store.append(blob));
  const int file = open_unnamed_file(folder.path);
  REQUIRE_GE(file, 0);
  const std::uint64_t size = store.stats().disk_bytes;
  int found = 0;
  for (std::uint64_t bit = 0; bit < 8 * size; ++bit) {
    unsigned char byte = 0;
    const auto at = static_cast<off_t>(bit / 8);
    const auto flip = [&] {
      REQUIRE_EQ(::pread(file, &byte, 1, at), 1);
      byte ^= static_cast<unsigned char>(1U << (bit % 8));
      REQUIRE_EQ(::pwrite(file, &byte, 1, at), 1);
    };
    flip();
    for (std::size_t i = 0; i < refs.size(); ++i) {
      const std::uint64_t begin = refs[i].place.offset;
      const bool hit = bit / 8 >= begin && bit / 8 < begin + refs[i].size();
      Bytes bytes(refs[i].size());
      try {
        store.read(refs[i], bytes);
        REQUIRE_FALSE(hit);
        REQUIRE(bytes == blobs[i]);
      } catch (const StorageError& error) {
        REQUIRE(hit);
        REQUIRE_EQ(error.kind(), StorageError::Kind::damaged);
        REQUIRE_NE(std::string(error.what()).find("at byte " + std::to_string(begin)),
                   std::string::npos);
        ++found;
      }
    }
    flip();
  }
  CHECK_EQ(found, 8 * (100 + 1 + 177));
  REQUIRE_EQ(::ftruncate(file, static_cast<off_t>(refs[3].place.offset) + 5), 0);
  CHECK_THROWS_WITH_AS(read_all(store, refs[3]), doctest::Contains("ends at byte"), StorageError);
  CHECK(read_all(store, refs[0]) == blobs[0]);
  ::close(file);
}

TEST_CASE("Compaction leaves a damaged blob in place and moves the others") {
  const StorageFolder folder;
  SegmentStore store({folder.path, 4096, 1 << 20, 0.9});
  std::vector<BlobRef> refs;
  for (std::uint64_t i = 0; i < 4; ++i)
    refs.push_back(store.append(blob_of(i, 900)));
  const int file = open_unnamed_file(folder.path);
  REQUIRE_EQ(::pwrite(file, "?", 1, static_cast<off_t>(refs[1].place.offset) + 7), 1);
  ::close(file);
  store.append(blob_of(9, 900)); // another segment
  store.release(refs[0]);
  const std::vector<BlobMove> moves = store.compact(1 << 20);
  REQUIRE_EQ(moves.size(), 2);
  CHECK(read_all(store, moves[0].to) == blob_of(2, 900));
  CHECK(read_all(store, moves[1].to) == blob_of(3, 900));
  CHECK(store.compact(1 << 20).empty());
  CHECK_THROWS_WITH_AS(read_all(store, refs[1]), doctest::Contains("is damaged"), StorageError);
}

/// A queue between two threads, in which one is at most 100 values ahead.
template <typename T>
class Queue {
public:
  void put(T value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return values_.size() < 100; });
    values_.push_back(std::move(value));
    changed_.notify_one();
  }
  T take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !values_.empty(); });
    T value = std::move(values_.front());
    values_.pop_front();
    changed_.notify_one();
    return value;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
};

// The owner decides and reads, and a writer thread appends and compacts for it, while readers read
// the blobs that they were handed.
TEST_CASE("A writer thread appends and compacts while the owner and others read and release") {
  const StorageFolder folder;
  SegmentStore store({folder.path, 32 << 10, 64 << 20, 0.7});
  struct Told {
    std::uint64_t seed = 0;
    BlobRef ref;
    std::vector<BlobMove> moves;
    bool last = false;
  };
  Queue<Told> told;
  const BlobRef lasting = store.append(blob_of(77, 3000));
  std::jthread writer([&] {
    for (std::uint64_t i = 0; i < 1500; ++i) {
      told.put({i, store.append(blob_of(i, 500 + i)), {}, false});
      if (i % 8 == 0)
        told.put({0, {}, store.compact(8000), false});
    }
    told.put({0, {}, {}, true});
  });
  std::jthread reader([&](const std::stop_token& stop) {
    while (!stop.stop_requested())
      REQUIRE(read_all(store, lasting) == blob_of(77, 3000));
  });
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::pair<BlobRef, std::uint64_t>> living;
  const auto place = [](const BlobRef& ref) { return std::pair(ref.segment, ref.place.offset); };
  for (Told now = told.take(); !now.last; now = told.take()) {
    for (const BlobMove& move : now.moves) {
      const auto moved = living.find(place(move.from));
      if (moved == living.end()) { // `lasting`, or a blob released in the meantime
        store.release(move.to);
        continue;
      }
      living[place(move.to)] = {move.to, moved->second.second};
      living.erase(moved);
      store.release(move.from);
    }
    if (now.moves.empty() && now.ref.segment != 0) {
      living[place(now.ref)] = {now.ref, now.seed};
      CHECK(read_all(store, now.ref) == blob_of(now.seed, 500 + now.seed));
    }
    if (living.size() > 40) {
      const auto victim = std::next(living.begin(), static_cast<long>(now.seed * 7 % 40));
      store.release(victim->second.first);
      living.erase(victim);
    }
  }
  reader.request_stop();
  for (const auto& [at, blob] : living)
    CHECK(read_all(store, blob.first) == blob_of(blob.second, 500 + blob.second));
  CHECK_EQ(store.stats().blobs, living.size() + 1);
  CHECK_GT(store.stats().moved_bytes, 0);
  CHECK(read_all(store, lasting) == blob_of(77, 3000));
}

} // namespace
} // namespace troupe::replay
