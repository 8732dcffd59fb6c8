#include <doctest/doctest.h>

#include "replay/batch/parallel_gather.hpp"
#include "replay/table/table.hpp"
#include "tests/replay/writers/episodes.hpp"

namespace troupe::replay {
namespace {

TEST_CASE("Any number of threads gathers the same batch from encoded or unencoded rows") {
  for (const Compression compression : {Compression::none, Compression::zstd}) {
    const TransitionSpec spec = pixel_spec(3, 3);
    Table table({.max_items = 2000, .compression = compression}, spec, 4);
    Writer writer = transition_writer(spec, 1, 16);
    Player player(spec, 2);
    for (int i = 0; i < 3000; ++i) {
      player.step(writer);
      if (const InsertionPtr made = writer.take())
        table.insert(*made);
    }
    CHECK_EQ(table.stats().encoded_chunks > 0, compression != Compression::none);
    std::vector<Item> items;
    for (const int threads : {1, 2, 5}) {
      ParallelGather gather_in_parts(threads);
      for (const std::int64_t rows : {0, 1, 3, 64, 201}) {
        table.sample(rows, items);
        Batch one(spec, rows + 2);
        Batch other(spec, rows + 2);
        gather(spec, items, one.view(), 2);
        gather_in_parts(spec, items, other.view(), 2);
        REQUIRE(one == other);
      }
    }
  }
}

TEST_CASE("An exception in one thread is rethrown, and the next batch is complete") {
  const TransitionSpec spec = pixel_spec(1, 1);
  Table table({}, spec, 4);
  Writer writer = transition_writer(spec, 1, 16);
  Player player(spec, 2);
  while (writer.pending_items() < 50)
    player.step(writer);
  table.insert(*writer.take());
  std::vector<Item> items;
  table.sample(40, items);
  ParallelGather gather_in_parts(4);
  Batch batch(spec, 40);
  const Item sound = items[35];
  items[35].history = 7; // more than the stack
  CHECK_THROWS_WITH_AS(gather_in_parts(spec, items, batch.view(), 0),
                       doctest::Contains("is not one of the transitions"), std::invalid_argument);
  items[35] = sound;
  gather_in_parts(spec, items, batch.view(), 0);
  for (std::size_t row = 0; row < batch.rows; ++row)
    player.check_row(batch, row);
  Batch small(spec, 10);
  CHECK_THROWS_AS(gather_in_parts(spec, items, small.view(), 0), std::invalid_argument);
  CHECK_THROWS_AS(ParallelGather(0), std::invalid_argument);
}

} // namespace
} // namespace troupe::replay
