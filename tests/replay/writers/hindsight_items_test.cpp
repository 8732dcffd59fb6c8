#include "replay/writers/hindsight_items.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>

#include <doctest/doctest.h>

#include "replay/chunks/window_reader.hpp"
#include "replay/table/table.hpp"

namespace troupe::replay {
namespace {

enum Column : std::size_t { kPixels, kAchieved, kGoal, kStepReward };

const Signature kSteps{.columns = {{"pixels", env::ElementType::uint8, {3, 4, 4}},
                                   {"achieved", env::ElementType::float32, {}},
                                   {"goal", env::ElementType::float32, {}},
                                   {"reward", env::ElementType::float32, {}}},
                       .items = "goals"};

constexpr float kFar = -1; // the goal of every episode, never reached

/// What a step achieves: a number that is unique to the step.
float achieved(std::int64_t episode, std::int64_t step) {
  return static_cast<float>(episode * 100 + step);
}
float reward(float got, float goal) {
  return got == goal ? 0.0F : -std::abs(got - goal);
}

float number(std::span<const std::byte> bytes) {
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}
void put_number(std::span<std::byte> place, float value) {
  std::memcpy(place.data(), &value, sizeof value);
}

std::optional<double> relabel(const Relabelling& item) {
  const float goal = number(item.at(item.goal(), kAchieved));
  for (std::int64_t row = item.first(); row < item.first() + item.count(); ++row) {
    put_number(item.replace(row, kGoal), goal);
    put_number(item.replace(row, kStepReward), reward(number(item.at(row, kAchieved)), goal));
  }
  return 2;
}

void write_step(Writer& writer, std::int64_t episode, std::int64_t step, bool last) {
  for (std::byte& byte : writer.next(kPixels))
    byte = static_cast<std::byte>(episode * 7 + step);
  const float got = achieved(episode, step);
  put_number(writer.next(kAchieved), got);
  put_number(writer.next(kGoal), kFar);
  put_number(writer.next(kStepReward), reward(got, kFar));
  writer.append_step(last);
}

void write_goals(Writer& writer, std::int64_t episode, std::int64_t rows) {
  for (std::int64_t step = 0; step < rows; ++step)
    write_step(writer, episode, step, step + 1 == rows);
}

/// An item as a reader sees it.
struct Read {
  std::int64_t episode = 0;
  std::int64_t first = 0; // step of its first row
  std::int64_t steps = 0; // rows other than padding
  int lane = -1;
  float goal = 0;
};

/// Reads an item and checks every value that it shows against the definition.
Read read(const HindsightLayout& layout, const Item& item, const Slice& relabelled) {
  WindowReader window;
  window.open(item);
  const RowLayout& rows = item.chunks[0]->layout();
  const auto value = [&](std::uint32_t k, std::size_t column) {
    return number({window.row(k) + rows.columns[column].offset, sizeof(float)});
  };
  Read made;
  REQUIRE(item.shape);
  made.lane = layout.lane(*item.shape);
  const std::size_t goal = layout.column(kGoal, made.lane);
  const std::size_t its_reward = layout.column(kStepReward, made.lane);
  std::set<std::size_t> shown{kPixels, kAchieved, goal, its_reward};
  for (std::size_t i = 0; i < item.shape->columns.size(); ++i)
    CHECK_EQ(item.shape->columns[i].empty(), !shown.contains(i));
  made.episode = static_cast<std::int64_t>(value(0, kAchieved)) / 100;
  made.first = static_cast<std::int64_t>(value(0, kAchieved)) % 100;
  const Slice all{0, item.rows};
  const Slice slice = made.lane < 0 ? all : item.shape->columns[goal].at(0);
  if (made.lane >= 0)
    CHECK(slice
          == Slice{relabelled.first, std::min(relabelled.count == 0 ? item.rows : relabelled.count,
                                              item.rows - relabelled.first)});
  made.goal = value(slice.first, goal);
  for (std::uint32_t k = 0; k < item.rows; ++k) {
    if (value(k, kAchieved) == 0)
      continue; // padding
    ++made.steps;
    REQUIRE_EQ(value(k, kAchieved), achieved(made.episode, made.first + k));
    REQUIRE_EQ(std::to_integer<int>(*window.row(k)), (made.episode * 7 + made.first + k) % 256);
    if (k < slice.first || k >= slice.first + slice.count)
      continue;
    REQUIRE_EQ(value(k, goal), made.goal);
    REQUIRE_EQ(value(k, its_reward), reward(value(k, kAchieved), made.goal));
  }
  return made;
}

std::vector<HindsightOptions> hindsight_settings() {
  std::vector<HindsightOptions> all;
  for (const EpisodeEnd end :
       {EpisodeEnd::pad, EpisodeEnd::shorten, EpisodeEnd::shift, EpisodeEnd::drop})
    for (const auto& [length, period, burn_in] :
         {std::array{2, 1, 0}, {1, 1, 0}, {5, 1, 0}, {5, 2, 1}, {6, 4, 2}, {3, 5, 0}, {40, 40, 0}})
      for (const Slice rows : {Slice{}, Slice{1, 1}, Slice{0, 1}, Slice{1, 0}})
        for (const GoalStrategy strategy :
             {GoalStrategy::final, GoalStrategy::future, GoalStrategy::episode})
          if (static_cast<int>(rows.first) < length)
            all.push_back({.items = {.length = length,
                                     .period = period,
                                     .burn_in = burn_in,
                                     .end = end,
                                     .chunk_rows = 1 + (length * 3) % 8},
                           .columns = {"reward", "goal"},
                           .rows = rows,
                           .goals = 3,
                           .strategy = strategy,
                           .max_rows = 30});
  return all;
}

TEST_CASE("Every relabelled item has one goal of its episode and the matching rewards") {
  for (const HindsightOptions& options : hindsight_settings()) {
    CAPTURE(options.items.length);
    CAPTURE(options.items.period);
    CAPTURE(static_cast<int>(options.items.end));
    CAPTURE(static_cast<int>(options.strategy));
    CAPTURE(options.rows.first);
    CAPTURE(options.rows.count);
    Writer writer = hindsight_writer(kSteps, 3, options, relabel);
    Writer plain = sequence_writer(kSteps, 3, options.items); // writes the original items only
    std::mt19937_64 random(2);
    std::vector<std::int64_t> lengths;
    std::vector<Read> originals;
    std::size_t relabelled = 0;
    std::int64_t rows = 0;
    std::int64_t named = 0;
    for (std::int64_t episode = 1; episode <= 20; ++episode) {
      lengths.push_back(1 + static_cast<std::int64_t>(random() % 30));
      write_goals(writer, episode, lengths.back());
      rows += lengths.back();
      for (std::int64_t step = 0; step < lengths.back(); ++step) {
        put_number(plain.next(kAchieved), achieved(episode, step));
        plain.append_step(step + 1 == lengths.back());
      }
      if (episode % 3 != 0)
        continue;
      const InsertionPtr made = writer.take();
      if (!made)
        continue;
      for (const ChunkRows& part : made->rows)
        named += part.count;
      for (const Item& item : made->items) {
        const Read one = read(HindsightLayout(kSteps, options), item, options.rows);
        const std::int64_t length = lengths[static_cast<std::size_t>(one.episode) - 1];
        if (one.lane < 0) {
          CHECK_EQ(one.goal, kFar);
          CHECK_EQ(item.priority, 1);
          originals.push_back(one);
          continue;
        }
        ++relabelled;
        CHECK_EQ(item.priority, 2);
        const auto goal = static_cast<std::int64_t>(one.goal);
        CHECK_EQ(goal / 100, one.episode);
        CHECK_LT(goal % 100, length);
        if (options.strategy == GoalStrategy::final)
          CHECK_EQ(goal % 100, length - 1);
        if (options.strategy == GoalStrategy::future)
          CHECK_GE(goal % 100, std::min(length - 1, one.first + item.history + 1));
      }
    }
    const InsertionPtr expected = plain.take();
    std::size_t k = 0;
    for (; expected && k < originals.size() && k < expected->items.size(); ++k)
      CHECK_EQ(achieved(originals[k].episode, originals[k].first),
               number({expected->items[k].row(0)
                           + expected->items[k].chunks[0]->layout().columns[kAchieved].offset,
                       4}));
    CHECK_GE(k, originals.size());
    if (options.items.end != EpisodeEnd::pad)
      CHECK_LE(named, rows); // no row is stored twice, whatever is relabelled
    if (options.rows.first == 0)
      CHECK_EQ(relabelled, 3 * originals.size());
  }
}

TEST_CASE("A future goal is any later row with equal probability") {
  constexpr std::int64_t kRows = 10;
  const HindsightOptions options{.columns = {"goal", "reward"}, .goals = 8, .max_rows = kRows};
  const HindsightLayout layout(kSteps, options);
  Writer writer = hindsight_writer(kSteps, 3, options, relabel);
  std::vector<std::vector<double>> times(kRows, std::vector<double>(kRows));
  constexpr int kEpisodes = 400;
  for (int i = 0; i < kEpisodes; ++i) {
    write_goals(writer, 1, kRows);
    const InsertionPtr made = writer.take();
    for (const Item& item : made->items)
      if (const Read one = read(layout, item, {}); one.lane >= 0)
        ++times[static_cast<std::size_t>(one.first)][static_cast<std::size_t>(one.goal) - 100];
  }
  for (std::size_t first = 0; first + 1 < kRows; ++first) {
    const double each = 8.0 * kEpisodes / static_cast<double>(kRows - 1 - first);
    for (std::size_t goal = 0; goal < kRows; ++goal) {
      CAPTURE(first);
      CAPTURE(goal);
      if (goal <= first)
        CHECK_EQ(times[first][goal], 0);
      else
        CHECK_LT(std::abs(times[first][goal] - each), 5 * std::sqrt(each) + 1e-9);
    }
  }
}

TEST_CASE("A row costs only the relabelled columns for each lane") {
  const auto row_bytes = [](const HindsightOptions& options, int lanes) {
    const HindsightLayout layout(kSteps, options);
    CHECK_EQ(layout.lanes(), lanes);
    return RowLayout(layout.signature()).row_bytes;
  };
  HindsightOptions options{.columns = {"goal", "reward"}, .rows = {1, 1}, .goals = 4};
  const std::size_t plain = RowLayout(kSteps).row_bytes;
  CHECK_LE(row_bytes(options, 4), plain + 4 * 8 + 15); // transitions: the row of the step alone
  options.rows = {};
  CHECK_LE(row_bytes(options, 8), plain + 8 * 8 + 15);
  options.items = {.length = 6, .period = 1, .end = EpisodeEnd::drop};
  options.rows = {1, 0};
  row_bytes(options, 20); // 5-step returns
  options.items = {.length = 80, .period = 40, .end = EpisodeEnd::shift};
  options.rows = {};
  row_bytes(options, 12);
  options.goals = 0;
  CHECK_EQ(row_bytes(options, 0), plain);
}

TEST_CASE("The rows of an open episode are not handed out and can still be relabelled") {
  const HindsightOptions options{
      .items = {.length = 2, .period = 1, .end = EpisodeEnd::drop, .chunk_rows = 3},
      .columns = {"goal", "reward"}};
  const HindsightLayout layout(kSteps, options);
  Writer writer = hindsight_writer(kSteps, 3, options, relabel);
  std::set<std::pair<std::uint64_t, std::uint32_t>> named;
  std::size_t items = 0;
  for (std::int64_t episode = 1; episode < 30; ++episode) {
    for (std::int64_t step = 0; step < episode; ++step) {
      write_step(writer, episode, step, step + 1 == episode);
      if ((episode + step) % 4 != 0)
        continue;
      const InsertionPtr made = writer.take();
      if (!made)
        continue;
      std::set<std::pair<std::uint64_t, std::uint32_t>> rows;
      for (const ChunkRows& part : made->rows)
        for (std::uint32_t k = 0; k < part.count; ++k) {
          CHECK(named.emplace(part.chunk->id(), part.first + k).second);
          const auto got = number(
              {part.chunk->row(part.first + k) + part.chunk->layout().columns[kAchieved].offset,
               sizeof(float)});
          const bool open = step + 1 < episode;
          CHECK_LE(static_cast<std::int64_t>(got) / 100, open ? episode - 1 : episode);
        }
      for (const Item& item : made->items)
        read(layout, item, {});
      items += made->items.size();
    }
  }
  CHECK_GT(items, 5 * 350);
}

TEST_CASE("Relabelled items are sampled from a table unchanged, encoded or not") {
  const HindsightOptions options{.columns = {"goal", "reward"}, .rows = {1, 1}, .goals = 4};
  for (const Compression compression : {Compression::none, Compression::zstd}) {
    Writer writer = hindsight_writer(kSteps, 3, options, relabel);
    Table table({.max_items = 5'000,
                 .sampler = {.kind = SelectorKind::prioritized},
                 .compression = compression},
                writer.layout().signature, 4);
    std::vector<Item> items;
    int relabelled = 0;
    int original = 0;
    for (std::int64_t episode = 1; episode < 60; ++episode) {
      write_goals(writer, episode, 50);
      table.insert(*writer.take());
      table.sample(20, items);
      for (const Item& item : items)
        ++(read(HindsightLayout(kSteps, options), item, options.rows).lane >= 0 ? relabelled
                                                                                : original);
      items.clear();
    }
    CHECK_GT(relabelled, 6 * original); // four of priority 2 for each one of priority 1
    CHECK_GT(original, 0);
  }
}

TEST_CASE("An item for which the relabelling function returns nothing is omitted") {
  Writer writer = hindsight_writer(kSteps, 3, {.columns = {"goal", "reward"}},
                                   [](const Relabelling& item) -> std::optional<double> {
                                     if (item.first() % 2 == 0)
                                       return {};
                                     return relabel(item);
                                   });
  write_goals(writer, 1, 11);
  CHECK_EQ(writer.pending_items(), 10 + 5 * 4);
}

TEST_CASE("A relabelling writer continues from its saved state as if uninterrupted") {
  for (std::int64_t open = 0; open < 12; ++open) {
    const HindsightOptions options{
        .items = {.length = 4, .period = 2, .end = EpisodeEnd::pad, .chunk_rows = 5},
        .columns = {"goal", "reward"},
        .max_rows = 12};
    Writer writer = hindsight_writer(kSteps, 3, options, relabel);
    write_goals(writer, 1, 9);
    writer.take();
    write_goals(writer, 2, 7);
    for (std::int64_t step = 0; step < open; ++step)
      write_step(writer, 3, step, false);
    std::vector<std::byte> state;
    writer.save_state(state);
    Writer resumed = hindsight_writer(kSteps, 5, options, relabel);
    REQUIRE(resumed.load_state(state).empty());
    InsertionPtr made[2];
    for (Writer* one : {&writer, &resumed}) {
      for (std::int64_t step = open; step < 12; ++step)
        write_step(*one, 3, step, step == 11);
      made[one == &writer ? 0 : 1] = one->take();
    }
    REQUIRE_EQ(made[0]->items.size(), made[1]->items.size());
    CHECK_EQ(made[0]->sequence, made[1]->sequence);
    CHECK_EQ(made[0]->writer_id, made[1]->writer_id);
    for (std::size_t i = 0; i < made[0]->items.size(); ++i) {
      const Read a = read(HindsightLayout(kSteps, options), made[0]->items[i], {});
      const Read b = read(HindsightLayout(kSteps, options), made[1]->items[i], {});
      CHECK_EQ(made[0]->items[i].key, made[1]->items[i].key);
      CHECK_EQ(a.episode, b.episode);
      CHECK_EQ(a.first, b.first);
      CHECK_EQ(a.steps, b.steps);
      CHECK_EQ(a.lane, b.lane);
      CHECK_EQ(a.goal, b.goal);
    }
    for (std::size_t size = 0; size < state.size(); size += 11)
      CHECK_THROWS_AS(resumed.load_state(std::span(state).first(size)), std::runtime_error);
  }
}

TEST_CASE("Invalid relabelling options and accesses are refused") {
  const auto refused = [](const HindsightOptions& options, const char* words) {
    CHECK_THROWS_WITH_AS(hindsight_writer(kSteps, 1, options, relabel), doctest::Contains(words),
                         std::invalid_argument);
  };
  refused({.columns = {"goal", "rewards"}}, "'rewards' but must be one of pixels, achieved, goal");
  refused({.columns = {"goal", "goal"}}, "'goal' twice");
  refused({.columns = {}}, "columns is empty");
  refused({.columns = {"goal"}, .goals = 65}, "goals is 65 but must be 0 to 64");
  refused({.columns = {"goal"}, .rows = {2, 1}}, "rows.first is 2");
  refused({.columns = {"goal"}, .max_rows = 0}, "max_rows is 0");
  refused({.items = {.length = 80, .period = 1}, .columns = {"goal"}}, "with 320 lanes");
  CHECK_THROWS_AS(hindsight_writer(kSteps, 1, {.columns = {"goal"}}, nullptr),
                  std::invalid_argument);

  Writer writer = hindsight_writer(
      kSteps, 1, {.columns = {"goal"}, .max_rows = 3}, [](const Relabelling& item) {
        CHECK_THROWS_AS(item.at(item.rows(), kGoal), std::out_of_range);
        CHECK_THROWS_AS(item.at(-1, kGoal), std::out_of_range);
        CHECK_THROWS_AS(item.replace(item.first(), kPixels), std::out_of_range);
        CHECK_THROWS_AS(item.replace(item.first() + 2, kGoal), std::out_of_range);
        return std::numeric_limits<double>::infinity();
      });
  write_step(writer, 1, 0, false);
  CHECK_THROWS_WITH_AS(write_step(writer, 1, 1, true), doctest::Contains("inf"),
                       std::invalid_argument);
  CHECK_EQ(writer.pending_items(), 1);
  for (std::int64_t step = 0; step < 3; ++step)
    write_step(writer, 2, step, false);
  CHECK_THROWS_WITH_AS(write_step(writer, 2, 3, true), doctest::Contains("max_rows = 3"),
                       std::length_error);
  writer.abandon();
  CHECK_EQ(writer.pending_items(), 1);
}

} // namespace
} // namespace troupe::replay
