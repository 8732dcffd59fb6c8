#include "replay/writers/episode_items.hpp"

#include <random>
#include <stdexcept>

#include <doctest/doctest.h>

#include "tests/replay/writers/marked_episodes.hpp"

namespace troupe::replay {
namespace {

MarkedItem rows_of(std::int64_t episode, std::int64_t first, std::int64_t end) {
  MarkedItem made;
  for (std::int64_t step = first; step < end; ++step)
    made.rows.push_back({episode, step});
  return made;
}

void write_episode(Writer& writer, std::int64_t episode, std::int64_t rows,
                   bool to_the_end = true) {
  for (std::int64_t step = 0; step < rows; ++step) {
    write_marked(writer, {episode, step});
    writer.append_step(to_the_end && step + 1 == rows);
  }
}

TEST_CASE("every episode is an item of its own, over as many chunks as it needs") {
  for (const int chunk_rows : {1, 4, 64}) {
    Writer writer =
        episode_writer(marked_signature(), 3, {.max_rows = 40, .chunk_rows = chunk_rows});
    std::mt19937_64 random(4);
    std::vector<MarkedItem> got;
    std::vector<MarkedItem> expected;
    for (std::int64_t episode = 1; episode < 60; ++episode) {
      const auto rows = 1 + static_cast<std::int64_t>(random() % 40);
      if (episode % 7 == 0) { // its environment fails
        write_episode(writer, episode, rows, false);
        writer.abandon();
        continue;
      }
      write_episode(writer, episode, rows);
      expected.push_back(rows_of(episode, 0, rows));
      if (random() % 3 == 0)
        take_marked(writer, got);
    }
    take_marked(writer, got);
    CHECK(got == expected);
  }
}

TEST_CASE("a longer episode is refused and changes nothing") {
  Writer writer = episode_writer(marked_signature(), 3, {.max_rows = 5, .chunk_rows = 3});
  write_episode(writer, 1, 5);
  write_episode(writer, 2, 5, false);
  for (int i = 0; i < 3; ++i)
    CHECK_THROWS_WITH_AS(writer.append_step(true), doctest::Contains("max_rows = 5; raise it"),
                         std::length_error);
  writer.abandon();
  write_episode(writer, 3, 4);
  std::vector<MarkedItem> got;
  take_marked(writer, got);
  CHECK(got == std::vector<MarkedItem>{rows_of(1, 0, 5), rows_of(3, 0, 4)});
}

TEST_CASE("a longer episode is cut into items that have every row once") {
  for (const std::int64_t rows : {1, 4, 5, 6, 9, 10, 11, 23}) {
    CAPTURE(rows);
    Writer writer = episode_writer(marked_signature(), 3,
                                   {.max_rows = 5, .too_long = LongEpisode::cut, .chunk_rows = 3});
    write_episode(writer, 1, rows);
    write_episode(writer, 2, 2);
    const InsertionPtr made = writer.take();
    std::vector<MarkedItem> expected;
    for (std::int64_t first = 0; first < rows; first += 5)
      expected.push_back(rows_of(1, first, std::min<std::int64_t>(rows, first + 5)));
    expected.push_back(rows_of(2, 0, 2));
    REQUIRE_EQ(made->items.size(), expected.size());
    std::vector<std::uint8_t> flags;
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(marked(made->items[i]) == expected[i]);
    for (const ChunkRows& part : made->rows)
      for (std::uint32_t k = 0; k < part.count; ++k)
        flags.push_back(part.chunk->flags(part.first + k));
    for (std::size_t k = 0; k < flags.size(); ++k) { // of two episodes, however they were cut
      const bool first = k == 0 || static_cast<std::int64_t>(k) == rows;
      const bool last = static_cast<std::int64_t>(k) == rows - 1 || k + 1 == flags.size();
      CHECK_EQ(flags[k], (first ? Chunk::kFirst : 0) | (last ? Chunk::kLast : 0));
    }
  }
}

TEST_CASE("an episode writer continues from its saved state as if uninterrupted") {
  for (const LongEpisode too_long : {LongEpisode::refuse, LongEpisode::cut})
    for (std::int64_t open = 0; open < 12; ++open) {
      CAPTURE(open);
      const EpisodeOptions options{.max_rows = 12, .too_long = too_long, .chunk_rows = 5};
      const ItemPriority priority = [](const Writer&, const Window& window) {
        return static_cast<double>(window.count);
      };
      Writer writer = episode_writer(marked_signature(), 3, options, priority);
      write_episode(writer, 1, 7);
      writer.take();
      write_episode(writer, 2, 4);
      write_episode(writer, 3, open, false);
      std::vector<std::byte> state;
      writer.save_state(state);
      Writer resumed = episode_writer(marked_signature(), 1, options, priority);
      REQUIRE(resumed.load_state(state).empty());
      std::vector<MarkedItem> got[2];
      for (Writer* one : {&writer, &resumed}) {
        const auto index = one == &writer ? 0 : 1;
        for (std::int64_t step = open; step < 12; ++step) {
          write_marked(*one, {3, step});
          one->append_step(step == 11);
        }
        write_episode(*one, 4, 3);
        const InsertionPtr made = one->take();
        CHECK_EQ(made->sequence, 2);
        CHECK_EQ(made->writer_id, 3);
        for (const Item& item : made->items)
          got[index].push_back(marked(item));
      }
      CHECK_EQ(got[0].size(), 3);
      CHECK(got[0] == got[1]);
      CHECK_EQ(got[0][1].priority, 12);
      for (std::size_t size = 0; size < state.size(); size += 7)
        CHECK_THROWS_AS(resumed.load_state(std::span(state).first(size)), std::runtime_error);
    }
  CHECK_THROWS_WITH_AS(episode_writer(marked_signature(), 1, {.max_rows = 0}),
                       doctest::Contains("reach is 0"), std::invalid_argument);
}

} // namespace
} // namespace troupe::replay
