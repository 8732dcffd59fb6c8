#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "replay/storage/checkpoint_reader.hpp"
#include "replay/storage/checkpoint_writer.hpp"
#include "replay/storage/segment_store.hpp"
#include "replay/storage/storage_error.hpp"
#include "tests/replay/storage/stored_blobs.hpp"

namespace troupe::replay {
namespace {

namespace fs = std::filesystem;

/// A trivially correct model that keeps everything in memory, applies the same operations to a
/// store and compares.
class Model {
public:
  Model(const fs::path& folder, std::uint64_t seed)
      : folder_(folder),
        config_{folder / "spill", 16 << 10, 400 << 10, 0.5},
        random_(seed),
        store_(std::make_unique<SegmentStore>(config_)) {}

  void step() {
    const std::uint64_t what = random_.bits() % 1000;
    if (what < 450)
      append();
    else if (what < 700)
      read();
    else if (what < 900)
      release_one();
    else if (what < 990)
      compact(random_.bits() % 20'000);
    else
      reopen();
    check_stats();
  }

  /// Compacts until nothing is worth moving: then at most half of the full segments is dead.
  void compact_to_the_end() {
    for (std::size_t moves = 1; moves > 0;) {
      moves = compact(4000);
      release_old();
    }
    const SegmentStoreStats stats = store_->stats();
    CHECK_LE(stats.disk_bytes,
             2 * stats.living_bytes + config_.segment_bytes + stats.segments * kHead);
  }

  void release_all() {
    release_old();
    while (!living_.empty())
      release_one();
    CHECK_EQ(store_->stats().living_bytes, 0);
    CHECK(store_->compact(1).empty());
    CHECK_LE(store_->stats().segments, 1);
    CHECK_LE(store_->stats().disk_bytes, kHead);
  }

  int refusals() const { return refusals_; }
  std::uint64_t moves() const { return moves_; }

private:
  struct Entry {
    BlobRef ref;
    Bytes bytes;
  };

  void append() {
    // Some blobs are larger than a segment.
    const std::size_t size = random_.bits() % (random_.bits() % 50 == 0 ? 40'000 : 3'000);
    Entry entry{{}, blob_of(random_.bits(), size)};
    const std::uint64_t before = store_->stats().appended_bytes;
    try {
      entry.ref = store_->append(entry.bytes);
    } catch (const StorageError& error) {
      REQUIRE_EQ(error.kind(), StorageError::Kind::full);
      CHECK_EQ(store_->stats().appended_bytes, before);
      ++refusals_;
      release_old();
      for (int i = 0; i < 8 && !living_.empty(); ++i)
        release_one();
      return;
    }
    CHECK_EQ(entry.ref.size(), size);
    living_.push_back(std::move(entry));
  }

  std::size_t any() { return random_.bits() % living_.size(); }

  void read() {
    if (!living_.empty()) {
      const Entry& entry = living_[any()];
      CHECK(read_all(*store_, entry.ref) == entry.bytes);
    }
  }

  void release_one() {
    if (living_.empty())
      return;
    const std::size_t i = any();
    store_->release(living_[i].ref);
    CHECK_THROWS_AS(store_->release(living_[i].ref), std::invalid_argument);
    CHECK_THROWS_AS(read_all(*store_, living_[i].ref), std::invalid_argument);
    living_[i] = std::move(living_.back());
    living_.pop_back();
  }

  std::size_t compact(std::uint64_t max_bytes) {
    const std::vector<BlobMove> moves = store_->compact(max_bytes);
    std::uint64_t bytes = 0;
    for (const BlobMove& move : moves) {
      bytes += move.to.size();
      for (Entry& entry : living_)
        if (entry.ref == move.from) {
          CHECK(read_all(*store_, move.to) == entry.bytes);
          CHECK(read_all(*store_, move.from) == entry.bytes);
          old_.push_back({move.from, entry.bytes});
          entry.ref = move.to;
        }
    }
    if (moves.size() > 1)
      CHECK_LE(bytes, max_bytes);
    moves_ += moves.size();
    if (random_.bits() % 2 == 0)
      release_old();
    return moves.size();
  }

  void release_old() {
    for (const Entry& entry : old_) {
      CHECK(read_all(*store_, entry.ref) == entry.bytes);
      store_->release(entry.ref);
    }
    old_.clear();
  }

  /// Moves the contents to another store through a checkpoint, as after a restart.
  void reopen() {
    release_old();
    const fs::path folder = folder_ / std::to_string(++checkpoints_);
    {
      CheckpointWriter writer(folder, {}, {.segment_bytes = 16 << 10});
      for (std::size_t i = 0; i < living_.size(); ++i)
        writer.add({0, i, 0}, living_[i].bytes);
      writer.commit({});
    }
    store_ = std::make_unique<SegmentStore>(config_);
    const std::vector<BlobRef> refs = store_->adopt(CheckpointReader(folder));
    fs::remove_all(folder);
    REQUIRE_EQ(refs.size(), living_.size());
    for (std::size_t i = 0; i < refs.size(); ++i)
      living_[i].ref = refs[i];
  }

  void check_stats() const {
    const SegmentStoreStats stats = store_->stats();
    std::uint64_t bytes = 0;
    std::set<std::uint64_t> segments;
    for (const auto* entries : {&living_, &old_})
      for (const Entry& entry : *entries) {
        bytes += kRecord + entry.bytes.size();
        segments.insert(entry.ref.segment);
      }
    CHECK_EQ(stats.living_bytes, bytes);
    CHECK_EQ(stats.blobs, living_.size() + old_.size());
    CHECK_GE(stats.segments, segments.size());
    CHECK_LE(stats.disk_bytes, config_.max_disk_bytes);
    CHECK_GE(stats.disk_bytes, bytes);
  }

  fs::path folder_;
  SegmentStoreConfig config_;
  env::Random random_;
  std::unique_ptr<SegmentStore> store_;
  std::vector<Entry> living_;
  std::vector<Entry> old_; // moved but not released yet
  int refusals_ = 0;
  int checkpoints_ = 0;
  std::uint64_t moves_ = 0;
};

TEST_CASE(
    "A store behaves like an in-memory model under append, read, release, compact and reopen") {
  int refusals = 0;
  std::uint64_t moves = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    const StorageFolder folder;
    Model model(folder.path, seed);
    for (int i = 0; i < 3000; ++i)
      model.step();
    model.compact_to_the_end();
    model.release_all();
    refusals += model.refusals();
    moves += model.moves();
  }
  CHECK_GT(refusals, 0); // otherwise the test covers less than its name says
  CHECK_GT(moves, 100);
}

} // namespace
} // namespace troupe::replay
