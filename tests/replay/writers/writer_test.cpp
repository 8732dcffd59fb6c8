#include "replay/writers/n_step_items.hpp"

#include <cstring>
#include <limits>
#include <set>

#include <doctest/doctest.h>

#include "replay/storage/segment_file.hpp"
#include "tests/replay/writers/episodes.hpp"

namespace troupe::replay {
namespace {

Batch gathered(const TransitionSpec& spec, const std::vector<Item>& items) {
  Batch batch(spec, static_cast<std::int64_t>(items.size()));
  gather(spec, items, batch.view(), 0);
  return batch;
}

std::vector<Item> play(Writer& writer, Player& player, int steps, std::uint64_t seed = 5) {
  std::mt19937_64 random(seed);
  std::vector<Item> items;
  for (int i = 0; i < steps; ++i) {
    player.step(writer);
    if (random() % 7 == 0)
      if (const InsertionPtr made = writer.take())
        items.insert(items.end(), made->items.begin(), made->items.end());
  }
  if (const InsertionPtr made = writer.take())
    items.insert(items.end(), made->items.begin(), made->items.end());
  return items;
}

// Recomputes the transitions of random episodes of 1 to 12 steps from the raw data, according to
// the definition in spec.hpp.
TEST_CASE("Every item matches the definition of a transition, and each step starts one") {
  for (const int stack : {1, 2, 3, 5})
    for (const int n_step : {1, 2, 3, 6, 20})
      for (const int extra_rows : {0, 1, 13}) {
        CAPTURE(stack);
        CAPTURE(n_step);
        CAPTURE(extra_rows);
        const TransitionSpec spec = pixel_spec(stack, n_step);
        Writer writer = transition_writer(spec, 9, stack + n_step + extra_rows);
        Player player(spec, 11);
        const auto items = play(writer, player, 400);
        const Batch batch = gathered(spec, items);
        std::set<std::pair<std::int64_t, std::size_t>> seen;
        for (std::size_t i = 0; i < items.size(); ++i) {
          seen.insert(player.check_row(batch, i));
          CHECK_EQ(batch.key[i], i);
        }
        CHECK_EQ(seen.size(), items.size());
        std::size_t starts = 0; // in finished episodes
        for (const RawEpisode& episode : player.episodes)
          if (&episode != &player.episodes.back())
            starts += episode.size() - 1;
        CHECK_GE(items.size(), starts);
        CHECK_LE(items.size(), starts + player.episodes.back().size());
      }
}

TEST_CASE("Insertions list every row once and are numbered from 1") {
  const TransitionSpec spec = pixel_spec(3, 2);
  Writer writer = transition_writer(spec, 4, 8);
  Player player(spec, 3);
  CHECK_EQ(writer.take(), nullptr);
  std::size_t rows = 0;
  std::uint64_t sequence = 0;
  std::set<std::pair<std::uint64_t, std::uint32_t>> seen;
  for (int i = 0; i < 300; ++i) {
    player.step(writer);
    if (i % 5 != 0)
      continue;
    const InsertionPtr made = writer.take();
    CHECK_EQ(writer.pending_items(), 0);
    if (!made)
      continue;
    CHECK_EQ(made->sequence, ++sequence);
    CHECK_EQ(made->writer_id, 4);
    for (const ChunkRows& part : made->rows)
      for (std::uint32_t r = part.first; r < part.first + part.count; ++r) {
        CHECK(seen.emplace(part.chunk->id(), r).second);
        ++rows;
      }
  }
  CHECK_GT(rows, 280);
}

TEST_CASE("Frames are stored once, so that a transition costs one frame and its scalars") {
  TransitionSpec spec = pixel_spec(3, 3);
  spec.frame.shape = {3, 84, 84};
  Writer writer = transition_writer(spec, 0);
  std::set<std::shared_ptr<const Chunk>> chunks;
  std::int64_t items = 0;
  const std::vector<float> action(3);
  for (int episode = 0; episode < 4; ++episode) {
    begin_episode(writer);
    for (int t = 1; t <= 1000; ++t) {
      append_step(writer, action, 0, 1, t == 1000);
      const InsertionPtr made = writer.take();
      if (!made)
        continue;
      items += std::ssize(made->items);
      for (const ChunkRows& rows : made->rows)
        chunks.insert(rows.chunk);
    }
  }
  std::size_t bytes = 0;
  for (const auto& chunk : chunks)
    bytes += chunk->bytes();
  const double per_item = static_cast<double>(bytes) / static_cast<double>(items);
  CHECK_EQ(items, 4000);
  CHECK_LT(per_item, 1.03 * (84 * 84 * 3 + 3 * 4 + 8)); // nine frames each would be 6 times as much
}

TEST_CASE("A writer continues from its saved state as if uninterrupted") {
  const TransitionSpec spec = pixel_spec(3, 4);
  for (int stop = 0; stop < 60; ++stop) {
    CAPTURE(stop);
    Writer writer = transition_writer(spec, 77, 9);
    Player player(spec, 21);
    for (int i = 0; i < stop; ++i) {
      player.step(writer);
      if (i % 11 == 10)
        writer.take();
    }
    std::vector<std::byte> state{std::byte{1}};
    writer.save_state(state);
    state.push_back(std::byte{2});
    Writer resumed = transition_writer(spec, 1, 9);
    const auto left = resumed.load_state(std::span(state).subspan(1));
    REQUIRE_EQ(left.size(), 1);
    CHECK_EQ(left[0], std::byte{2});
    CHECK_EQ(resumed.pending_items(), writer.pending_items());
    std::vector<std::byte> again{std::byte{1}};
    resumed.save_state(again);
    Player same = player;
    const auto items = play(writer, player, 50);
    const auto resumed_items = play(resumed, same, 50);
    CHECK(gathered(spec, items) == gathered(spec, resumed_items));
    player.step(writer);
    player.step(writer);
    same.step(resumed);
    same.step(resumed);
    const InsertionPtr a = writer.take();
    const InsertionPtr b = resumed.take();
    REQUIRE_EQ(a == nullptr, b == nullptr);
    if (a) {
      CHECK_EQ(a->sequence, b->sequence);
      CHECK_EQ(a->writer_id, b->writer_id);
    }
  }
}

TEST_CASE(
    "A truncated or mismatched state is refused, and a damaged one never crashes the writer") {
  const TransitionSpec spec = pixel_spec(3, 4);
  Writer writer = transition_writer(spec, 77, 9);
  Player player(spec, 21);
  for (int i = 0; i < 40; ++i)
    player.step(writer);
  std::vector<std::byte> state;
  writer.save_state(state);
  for (std::size_t size = 0; size < state.size(); size += 1 + size / 50)
    CHECK_THROWS_AS(writer.load_state(std::span(state).first(size)), std::runtime_error);
  std::vector<std::byte> after;
  writer.save_state(after);
  CHECK(after == state); // a refused state changes nothing
  Writer other = transition_writer(pixel_spec(2, 4), 1);
  CHECK_THROWS_WITH_AS(other.load_state(state), doctest::Contains("different steps"),
                       std::runtime_error);
  std::vector<std::byte> blank;
  transition_writer(spec, 1, 9).save_state(blank);
  std::mt19937_64 random(1);
  int refused = 0;
  int accepted = 0;
  for (int i = 0; i < 2000; ++i) {
    auto damaged = state;
    damaged[random() % 400] ^= static_cast<std::byte>(1U << random() % 8);
    Writer fresh = transition_writer(spec, 1, 9);
    CHECK_THROWS_AS(fresh.load_state(damaged), std::runtime_error);
    // With the checksum of the damaged bytes a wrong number may be accepted.
    const std::uint64_t checksum = checksum_of(std::span(damaged).subspan(16));
    std::memcpy(damaged.data() + 8, &checksum, sizeof checksum);
    try {
      fresh.load_state(damaged);
    } catch (const std::runtime_error&) {
      ++refused;
      after.clear();
      fresh.save_state(after);
      REQUIRE(after == blank);
      continue;
    }
    ++accepted;
    begin_episode(fresh);
    fresh.take();
  }
  CHECK_GT(refused, 200);
  CHECK_GT(accepted, 200);
}

TEST_CASE("Misuse of a transition writer throws with an explanation") {
  Writer writer = transition_writer(state_spec(1), 0);
  const std::vector<float> action(6);
  CHECK_THROWS_AS(append_step(writer, action, 0, 1, false), std::logic_error);
  begin_episode(writer);
  CHECK_THROWS_WITH_AS(append_step(writer, std::span(action).first(5), 0, 1, false),
                       doctest::Contains("5 floats"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(transition_writer(state_spec(3), 0, -3), doctest::Contains("must be 1 to"),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(transition_writer(state_spec(0), 0), doctest::Contains("n_step is 0"),
                       std::invalid_argument);
}

TEST_CASE("An item of more rows than there are is refused, whatever their number") {
  const Signature signature{.columns = {{"x", env::ElementType::float32, {}}}, .items = {}};
  Writer writer(signature, 1, {.reach = 4});
  writer.append_zeros(3);
  for (const std::int64_t count : {std::int64_t{3}, std::numeric_limits<std::int64_t>::max()})
    CHECK_THROWS_WITH_AS(writer.add_item(1, count),
                         doctest::Contains("is not among the newest 4 rows"),
                         std::invalid_argument);
  CHECK_EQ(writer.pending_items(), 0);
}

} // namespace
} // namespace troupe::replay
