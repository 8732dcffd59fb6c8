#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "replay/replay.pb.h"
#include "replay/service/wire_format.hpp"
#include "replay/table/table.hpp"
#include "tests/replay/table/saved_table.hpp"
#include "tests/replay/writers/episodes.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::replay {
namespace {

TransitionSpec picture_spec() {
  TransitionSpec spec = pixel_spec(3, 3);
  spec.frame.shape = {3, 16, 16};
  return spec;
}

TableConfig config_with(Compression compression, std::int64_t max_bytes = std::int64_t{1} << 30) {
  return {.max_items = 300, .max_bytes = max_bytes, .compression = compression};
}

/// A writer and its table. The same steps are written to each of these.
struct Stored {
  explicit Stored(const TableConfig& config)
      : table(config, picture_spec(), 5), writer(transition_writer(picture_spec(), 1, 8)) {}
  Table table;
  Writer writer;
};

/// Pictures in which few pixels change from step to step.
class Steps {
public:
  void play(std::initializer_list<Stored*> all, int steps) {
    for (int i = 0; i < steps; ++i, ++step_) {
      for (int k = 0; k < 20; ++k)
        frame_[random_() % frame_.size()] = static_cast<std::byte>(random_());
      for (Stored* stored : all)
        add(*stored);
    }
  }

private:
  void add(Stored& stored) const {
    std::ranges::copy(frame_, stored.writer.next(kFrame).begin());
    if (step_ % 50 == 0)
      begin_episode(stored.writer);
    else
      append_step(stored.writer, std::vector<float>{0.1F, 0.2F, 0.3F}, static_cast<float>(step_), 1,
                  step_ % 50 == 49);
    if (const InsertionPtr made = stored.writer.take())
      stored.table.insert(*made);
  }

  std::mt19937_64 random_{3};
  std::vector<std::byte> frame_ = std::vector<std::byte>(picture_spec().frame.bytes());
  int step_ = 0;
};

/// Checks that samples of both tables are equal, gathered here and sent over the wire.
void check_same(Table& a, Table& b) {
  const TransitionSpec spec = picture_spec();
  const RowLayout layout(spec);
  std::vector<Item> items;
  std::vector<Item> same;
  WindowReader reader;
  for (int round = 0; round < 10; ++round) {
    a.sample(32, items);
    b.sample(32, same);
    Batch left(spec, 32);
    Batch right(spec, 32);
    gather(spec, items, left.view(), 0);
    gather(spec, same, right.view(), 0, &reader);
    REQUIRE(left == right);
    const auto new_frame = [](std::size_t bytes) { return env::wire::Frame(bytes); };
    const auto sent = encode_sample(layout, 7, 1, 0, items, new_frame);
    const auto also = encode_sample(layout, 7, 1, 0, same, new_frame);
    REQUIRE_EQ(sent.frames.size(), also.frames.size());
    for (std::size_t i = 0; i < sent.frames.size(); ++i)
      REQUIRE(std::ranges::equal(sent.frames[i].bytes(), also.frames[i].bytes()));
  }
}

TEST_CASE("Encoded chunks use less memory and give the same batches") {
  for (const Compression compression :
       {Compression::lz4, Compression::zstd, Compression::automatic}) {
    CAPTURE(std::string(compression_name(compression)));
    Stored plain(config_with(Compression::none));
    Stored encoded(config_with(compression));
    Steps steps;
    for (int i = 0; i < 20; ++i) {
      steps.play({&plain, &encoded}, 50);
      if (i > 0)
        check_same(plain.table, encoded.table);
    }
    CHECK_EQ(plain.table.stats().encoded_chunks, 0);
    CHECK_GT(encoded.table.stats().encoded_chunks, 30);
    CHECK_LT(encoded.table.stats().bytes, plain.table.stats().bytes / 2);
  }
}

TEST_CASE("A chunk that a writer or a sample holds is not encoded") {
  Stored encoded(config_with(Compression::automatic));
  Steps steps;
  steps.play({&encoded}, 100);
  std::vector<Item> held;
  encoded.table.sample(200, held);
  const std::int64_t before = encoded.table.stats().encoded_chunks;
  const std::byte* row = nullptr;
  for (const Item& item : held)
    if (!item.chunks[0]->encoded())
      row = item.row(0);
  REQUIRE(row != nullptr);
  const std::byte first = *row;
  steps.play({&encoded}, 200);
  CHECK_EQ(*row, first);
  const auto raw_and_held =
      std::ranges::count_if(held, [](const Item& item) { return !item.chunks[0]->encoded(); });
  CHECK_GT(raw_and_held, 0);
  CHECK_GE(encoded.table.stats().encoded_chunks, before);
}

TEST_CASE("The byte budget counts encoded chunks at their encoded size") {
  Stored plain(config_with(Compression::none, 100'000));
  Stored encoded(config_with(Compression::automatic, 100'000));
  Steps steps;
  steps.play({&plain, &encoded}, 1000);
  CHECK_LE(plain.table.stats().bytes, 100'000);
  CHECK_LE(encoded.table.stats().bytes, 100'000);
  CHECK_GT(encoded.table.stats().items, 2 * plain.table.stats().items);
}

TEST_CASE("A table of encoded chunks is saved and loaded with or without compression") {
  const TemporaryFolder folder;
  const std::string path = (folder / "table").string();
  Stored encoded(config_with(Compression::automatic));
  Steps steps;
  steps.play({&encoded}, 500);
  save(encoded.table, path);
  Table restored(config_with(Compression::automatic), picture_spec(), 9);
  CHECK_EQ(restored.load(path), "");
  CHECK_GE(restored.stats().encoded_chunks, encoded.table.stats().encoded_chunks);
  check_same(encoded.table, restored);
  Table plain(config_with(Compression::none), picture_spec(), 9);
  CHECK_THROWS_WITH_AS(plain.load(path),
                       doctest::Contains("replay.compression was automatic and is none"),
                       std::runtime_error);
  plain.load(path, Table::ConfigChange::accept);
  CHECK_EQ(plain.stats().encoded_chunks, 0);
  CHECK_EQ(plain.stats().items, 300);
}

TEST_CASE("An unknown compression name is refused with the valid ones") {
  CHECK(compression_named("zstd") == Compression::zstd);
  CHECK_THROWS_WITH_AS(compression_named("gzip"),
                       doctest::Contains("none, packed, lz4, zstd, automatic"),
                       std::invalid_argument);
  TableConfig config;
  config.compression = static_cast<Compression>(9);
  CHECK_THROWS_WITH_AS(Table(config, picture_spec(), 1), doctest::Contains("replay.compression"),
                       std::invalid_argument);
}

} // namespace
} // namespace troupe::replay
