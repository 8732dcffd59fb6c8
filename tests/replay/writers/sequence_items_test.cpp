#include "replay/writers/sequence_items.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>

#include <doctest/doctest.h>

#include "tests/replay/writers/marked_episodes.hpp"

namespace troupe::replay {
namespace {

constexpr EpisodeEnd kEnds[] = {EpisodeEnd::pad, EpisodeEnd::shorten, EpisodeEnd::shift,
                                EpisodeEnd::drop};

std::vector<SequenceOptions> sequence_settings() {
  std::vector<SequenceOptions> all;
  for (const EpisodeEnd end : kEnds)
    for (const int length : {1, 2, 5, 8})
      for (const int period : {1, 2, 4, 7, 11})
        for (const int burn_in : {0, 1, 3})
          if (burn_in < length)
            all.push_back({.length = length,
                           .period = period,
                           .burn_in = burn_in,
                           .end = end,
                           .chunk_rows = 1 + (length + period) % 7});
  return all;
}

/// Items by definition, computed step by step over a whole episode.
std::vector<MarkedItem> expected_items(const SequenceOptions& options, std::int64_t episode,
                                       std::int64_t rows) {
  const auto item = [&](std::int64_t first, std::int64_t end, std::int64_t zeros) {
    MarkedItem made{.rows = {}, .history = static_cast<std::uint32_t>(options.burn_in)};
    for (std::int64_t step = first; step < end; ++step)
      made.rows.push_back({episode, step});
    made.rows.resize(made.rows.size() + static_cast<std::size_t>(zeros));
    return made;
  };
  std::vector<MarkedItem> items;
  std::set<std::int64_t> covered;
  for (std::int64_t first = 0; first < rows; first += options.period) {
    const std::int64_t end = first + options.length;
    if (end <= rows) {
      items.push_back(item(first, end, 0));
      for (std::int64_t step = first; step < end; ++step)
        covered.insert(step);
      continue;
    }
    if (options.end == EpisodeEnd::drop || covered.contains(rows - 1))
      break;
    const std::int64_t from =
        options.end == EpisodeEnd::shift ? std::max<std::int64_t>(0, rows - options.length) : first;
    if (rows - from > options.burn_in)
      items.push_back(item(from, rows, options.end == EpisodeEnd::pad ? end - rows : 0));
    break;
  }
  return items;
}

/// Writes episodes of random lengths and remembers their lengths.
class EpisodePlayer {
public:
  explicit EpisodePlayer(std::uint64_t seed) : random_(seed) {}

  void step(Writer& writer) {
    if (left_ == 0) {
      left_ = 1 + static_cast<std::int64_t>(random_() % 25);
      lengths.push_back(0);
    }
    --left_;
    write_marked(writer, {std::ssize(lengths), lengths.back()++});
    writer.append_step(left_ == 0);
  }
  bool between_episodes() const { return left_ == 0; }

  std::vector<std::int64_t> lengths;

private:
  std::mt19937_64 random_;
  std::int64_t left_ = 0;
};

TEST_CASE("Sequences match their definition for all lengths, periods and episode ends") {
  for (const SequenceOptions& options : sequence_settings()) {
    CAPTURE(options.length);
    CAPTURE(options.period);
    CAPTURE(options.burn_in);
    CAPTURE(static_cast<int>(options.end));
    Writer writer = sequence_writer(marked_signature(), 3, options);
    EpisodePlayer player(7);
    std::vector<MarkedItem> got;
    for (int i = 0; i < 300 || !player.between_episodes(); ++i) {
      player.step(writer);
      if (i % 5 == 0)
        take_marked(writer, got);
    }
    take_marked(writer, got);
    std::vector<MarkedItem> expected;
    for (std::size_t i = 0; i < player.lengths.size(); ++i)
      for (MarkedItem& item :
           expected_items(options, static_cast<std::int64_t>(i) + 1, player.lengths[i]))
        expected.push_back(std::move(item));
    REQUIRE_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      REQUIRE(got[i] == expected[i]);
  }
}

TEST_CASE("With a period of at most length minus burn_in, every row after the first burn_in rows "
          "is trained on") {
  for (const SequenceOptions& options : sequence_settings()) {
    if (options.end == EpisodeEnd::drop || options.period > options.length - options.burn_in)
      continue;
    for (std::int64_t rows = 1; rows < 40; ++rows) {
      Writer writer = sequence_writer(marked_signature(), 3, options);
      for (std::int64_t step = 0; step < rows; ++step) {
        write_marked(writer, {1, step});
        writer.append_step(step + 1 == rows);
      }
      std::vector<MarkedItem> got;
      take_marked(writer, got);
      std::set<std::int64_t> trained;
      for (const MarkedItem& item : got)
        for (std::size_t k = item.history; k < item.rows.size(); ++k)
          if (item.rows[k].episode == 1)
            trained.insert(item.rows[k].step);
      CHECK_EQ(std::ssize(trained), std::max<std::int64_t>(0, rows - options.burn_in));
    }
  }
}

TEST_CASE("An abandoned episode produces no shortened sequence, and the next one starts at row 0") {
  Writer writer = sequence_writer(marked_signature(), 3,
                                  {.length = 4, .period = 2, .end = EpisodeEnd::shorten});
  for (std::int64_t step = 0; step < 5; ++step) {
    write_marked(writer, {1, step});
    writer.append_step(false);
  }
  writer.abandon();
  for (std::int64_t step = 0; step < 4; ++step) {
    write_marked(writer, {2, step});
    writer.append_step(step == 3);
  }
  std::vector<MarkedItem> got;
  take_marked(writer, got);
  REQUIRE_EQ(got.size(), 2);
  CHECK(got[0].rows == std::vector<Mark>{{1, 0}, {1, 1}, {1, 2}, {1, 3}});
  CHECK(got[1].rows == std::vector<Mark>{{2, 0}, {2, 1}, {2, 2}, {2, 3}});
}

TEST_CASE("A writer keeps no rows that no item covers or can cover any more") {
  Writer writer = sequence_writer(
      marked_signature(), 3, {.length = 8, .period = 8, .end = EpisodeEnd::drop, .chunk_rows = 4});
  const auto play = [&](std::int64_t episode, std::int64_t rows) {
    for (std::int64_t step = 0; step < rows; ++step) {
      write_marked(writer, {episode, step});
      writer.append_step(step + 1 == rows);
    }
    return writer.take();
  };
  const InsertionPtr before = play(1, 8);
  REQUIRE(before != nullptr);
  for (std::int64_t episode = 2; episode < 1000; ++episode)
    REQUIRE(play(episode, 5) == nullptr); // too short for a sequence
  const InsertionPtr after = play(1000, 8);
  REQUIRE(after != nullptr);
  std::int64_t rows = 0;
  for (const ChunkRows& part : after->rows)
    rows += part.count;
  CHECK_GE(rows, 8);
  CHECK_LE(rows, 8 + 8 + 2 * 4); // the sequence, what was in its reach, and parts of chunks
  REQUIRE_EQ(after->items.size(), 1);
  std::vector<Mark> marks;
  for (std::int64_t step = 0; step < 8; ++step)
    marks.push_back({1000, step});
  CHECK(marked(after->items[0]).rows == marks);
  // Only the chunks of the first insertion are closed.
  std::vector<ChunkPtr> closed;
  for (std::size_t i = 0; i < before->items[0].chunks.size(); ++i)
    closed.push_back(before->items[0].chunks[i]);
  CHECK(after->closed == closed);
}

TEST_CASE("Each item has the priority that the priority function returns") {
  const SequenceOptions options{.length = 5, .period = 3, .burn_in = 2, .end = EpisodeEnd::pad};
  const ItemPriority priority = [](const Writer& rows,
                                   const Window& window) { // the greatest reward after the burn-in
    float greatest = 0;
    for (std::int64_t row = window.first + window.history; row < window.first + window.count;
         ++row) {
      float reward = 0;
      std::memcpy(&reward, rows.at(row, 2).data(), sizeof reward);
      greatest = std::max(greatest, reward);
    }
    return static_cast<double>(greatest);
  };
  Writer writer = sequence_writer(marked_signature(), 3, options, priority);
  EpisodePlayer player(5);
  for (int i = 0; i < 200; ++i)
    player.step(writer);
  std::vector<MarkedItem> got;
  take_marked(writer, got);
  CHECK_GT(got.size(), 20);
  for (const MarkedItem& item : got) {
    std::int64_t greatest = 0;
    for (std::size_t k = item.history; k < item.rows.size(); ++k)
      greatest = std::max(greatest, item.rows[k].step);
    CHECK_EQ(item.priority, static_cast<double>(greatest));
  }

  Writer wrong = sequence_writer(marked_signature(), 3, options, [](const Writer&, const Window&) {
    return std::numeric_limits<double>::quiet_NaN();
  });
  for (int i = 0; i < 4; ++i)
    wrong.append_step(false);
  CHECK_THROWS_WITH_AS(wrong.append_step(false), doctest::Contains("nan"), std::invalid_argument);
  CHECK_EQ(wrong.pending_items(), 0);
}

TEST_CASE("A sequence writer continues from its saved state as if uninterrupted") {
  for (const EpisodeEnd end : kEnds)
    for (int stop = 0; stop < 50; ++stop) {
      const SequenceOptions options{
          .length = 6, .period = 4, .burn_in = 1, .end = end, .chunk_rows = 4};
      Writer writer = sequence_writer(marked_signature(), 3, options);
      EpisodePlayer player(static_cast<std::uint64_t>(stop));
      for (int i = 0; i < stop; ++i) {
        player.step(writer);
        if (i % 9 == 8)
          writer.take();
      }
      std::vector<std::byte> state;
      writer.save_state(state);
      state.push_back(std::byte{9});
      Writer resumed = sequence_writer(marked_signature(), 8, options);
      REQUIRE_EQ(resumed.load_state(state).size(), 1);
      EpisodePlayer same = player;
      for (int i = 0; i < 60; ++i) {
        player.step(writer);
        same.step(resumed);
        if (i % 13 != 0)
          continue;
        const InsertionPtr a = writer.take();
        const InsertionPtr b = resumed.take();
        REQUIRE_EQ(a == nullptr, b == nullptr);
        if (!a)
          continue;
        REQUIRE_EQ(a->sequence, b->sequence);
        REQUIRE_EQ(a->writer_id, b->writer_id);
        REQUIRE_EQ(a->items.size(), b->items.size());
        for (std::size_t k = 0; k < a->items.size(); ++k) {
          REQUIRE_EQ(a->items[k].key, b->items[k].key);
          REQUIRE(marked(a->items[k]) == marked(b->items[k]));
        }
      }
      for (std::size_t size = 0; size + 1 < state.size(); size += 5)
        CHECK_THROWS_AS(resumed.load_state(std::span(state).first(size)), std::runtime_error);
    }
}

TEST_CASE("Sequence options out of range are refused, and the error names them") {
  const auto refused = [](const SequenceOptions& options, const char* words) {
    CHECK_THROWS_WITH_AS(sequence_writer(marked_signature(), 1, options), doctest::Contains(words),
                         std::invalid_argument);
  };
  refused({.length = 0}, "length is 0");
  refused({.length = 5, .period = 0}, "period is 0");
  refused({.length = 5, .period = 5, .burn_in = 5}, "burn_in (less than the length) is 5");
  refused({.length = 5, .period = 5, .burn_in = -1}, "is -1");
  refused({.length = 5, .period = 5, .chunk_rows = -2}, "chunk_rows is -2");
}

} // namespace
} // namespace troupe::replay
