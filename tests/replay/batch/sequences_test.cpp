#include <doctest/doctest.h>

#include "replay/service/shard_client.hpp"
#include "replay/service/shard_host.hpp"
#include "replay/table/table.hpp"
#include "tests/replay/service/service_tests.hpp"
#include "tests/replay/writers/episodes.hpp"

namespace troupe::replay {
namespace {

constexpr std::int64_t kSteps = 7;

TransitionSpec sequence_spec(int stack, std::int64_t period) {
  TransitionSpec spec = pixel_spec(stack, 1);
  spec.sequence_steps = kSteps;
  spec.sequence_period = period;
  spec.extras = {{"row", env::ElementType::int64, {}}, {"pair", env::ElementType::float32, {2}}};
  return spec;
}

/// Sequences and the memory behind them.
struct SequenceBatch {
  SequenceBatch(const TransitionSpec& spec, std::size_t rows)
      : observation(rows * (kSteps + 1) * spec.observation().bytes()),
        action(rows * kSteps * static_cast<std::size_t>(spec.action_size)),
        reward(rows * kSteps),
        discount(rows * kSteps),
        first(rows * (kSteps + 1)),
        number(rows * kSteps),
        pair(rows * kSteps * 2),
        key(rows) {}
  BatchView view() {
    return {.observation = observation,
            .next_observation = {},
            .action = action,
            .reward = reward,
            .discount = discount,
            .key = key,
            .first = first,
            .extras = {std::as_writable_bytes(std::span(number)),
                       std::as_writable_bytes(std::span(pair))}};
  }

  std::vector<std::byte> observation;
  std::vector<float> action, reward, discount;
  std::vector<std::uint8_t> first;
  std::vector<std::int64_t> number;
  std::vector<float> pair;
  std::vector<std::uint64_t> key;
};

/// Steps of random episodes, each marked with the number of its row.
struct MarkedSource {
  explicit MarkedSource(const TransitionSpec& spec)
      : writer(transition_writer(spec, 1, 16)), player(spec, 5) {}
  void step() {
    const std::int64_t row = writer.rows();
    const float pair[2] = {static_cast<float>(row), -static_cast<float>(row)};
    std::memcpy(writer.next(kExtras).data(), &row, sizeof row);
    std::memcpy(writer.next(kExtras + 1).data(), pair, sizeof pair);
    player.step(writer);
  }
  Writer writer;
  Player player;
};

/// Checks row `row` of the batch against the stream of all rows, from row `begin` of the stream on.
void check_sequence(const TransitionSpec& spec, const std::vector<RawEpisode>& episodes,
                    const SequenceBatch& batch, std::size_t row, std::size_t begin) {
  std::vector<std::pair<const RawEpisode*, std::size_t>> stream;
  for (const RawEpisode& episode : episodes)
    for (std::size_t t = 0; t < episode.size(); ++t)
      stream.emplace_back(&episode, t);
  const std::size_t bytes = spec.frame.bytes();
  const auto stack = static_cast<std::size_t>(spec.stack);
  for (std::size_t k = 0; k <= kSteps; ++k) {
    const auto& [episode, t] = stream.at(begin + k);
    CHECK_EQ(batch.first[row * (kSteps + 1) + k], t == 0 ? 1 : 0);
    for (std::size_t j = 0; j < stack; ++j) {
      const std::size_t back = stack - 1 - j;
      const RawStep& shown = (*episode)[t < back ? 0 : t - back];
      const std::byte* got = &batch.observation[((row * (kSteps + 1) + k) * stack + j) * bytes];
      CHECK(std::equal(shown.frame.begin(), shown.frame.end(), got));
    }
    if (k == 0)
      continue;
    const std::size_t step = row * kSteps + k - 1;
    const RawStep& raw = (*episode)[t];
    CHECK_EQ(batch.reward[step], raw.reward);
    CHECK_EQ(batch.discount[step], raw.discount);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK_EQ(batch.action[3 * step + i], t == 0 ? 0 : raw.action[i]);
    CHECK_EQ(batch.number[step], t == 0 ? 0 : static_cast<std::int64_t>(begin + k));
    CHECK_EQ(batch.pair[2 * step + 1], t == 0 ? 0 : -static_cast<float>(begin + k));
  }
}

TEST_CASE("Sequences continue across episode boundaries, but frame stacks do not") {
  for (const int stack : {1, 3})
    for (const std::int64_t period : {kSteps, std::int64_t{3}})
      for (const Compression compression : {Compression::none, Compression::zstd}) {
        CAPTURE(stack);
        CAPTURE(period);
        const TransitionSpec spec = sequence_spec(stack, period);
        Table table({.sampler = {.kind = SelectorKind::fifo},
                     .max_times_sampled = 1,
                     .compression = compression},
                    spec, 4);
        MarkedSource source(spec);
        for (int i = 0; i < 300; ++i) {
          source.step();
          if (const InsertionPtr made = source.writer.take())
            table.insert(*made);
        }
        const std::int64_t count = (300 - 1 - kSteps) / period + 1;
        CHECK_EQ(table.stats().items, count);
        std::vector<Item> items;
        table.sample(count, items);
        SequenceBatch batch(spec, items.size() + 1);
        gather(spec, items, batch.view(), 1);
        for (std::size_t i = 0; i < items.size(); ++i)
          check_sequence(spec, source.player.episodes, batch, i + 1,
                         i * static_cast<std::size_t>(period));
        CHECK_EQ(table.stats().items, 0); // each was sampled once
      }
}

TEST_CASE("A client receives the sequences that a table gathers") {
  const TransitionSpec spec = sequence_spec(2, 4);
  env::wire::Context context;
  ShardHost served(context, kFree, spec, 4);
  ShardClient client(context, served.endpoint(), spec);
  MarkedSource source(spec);
  for (int i = 0; i < 200; ++i) {
    source.step();
    if (const InsertionPtr made = source.writer.take())
      REQUIRE(client.insert(made, soon()));
  }
  REQUIRE(client.flush(soon()));
  SequenceBatch batch(spec, 50);
  REQUIRE_EQ(client.sample(48, batch.view(), 2, soon()), 48);
  for (std::size_t row = 2; row < 50; ++row)
    check_sequence(spec, source.player.episodes, batch, row, 4 * batch.key[row]);
  CHECK_EQ(served.counters().garbage, 0);
}

TEST_CASE("Restarted sequences begin at the newest row and drop unfinished ones") {
  for (const int stack : {1, 3}) {
    CAPTURE(stack);
    const TransitionSpec spec = sequence_spec(stack, kSteps);
    Table table({.sampler = {.kind = SelectorKind::fifo}, .max_times_sampled = 1}, spec, 4);
    MarkedSource source(spec);
    source.writer.restart_windows(); // windows without rows
    for (int i = 0; i < 20; ++i) {
      if (i == 5)
        source.writer.restart_windows();
      source.step();
    }
    table.insert(*source.writer.take());
    std::vector<Item> items;
    CHECK_EQ(table.stats().items, 2);
    table.sample(2, items);
    SequenceBatch batch(spec, 2);
    gather(spec, items, batch.view(), 0);
    check_sequence(spec, source.player.episodes, batch, 0, 4);
    check_sequence(spec, source.player.episodes, batch, 1, 4 + kSteps);
  }
}

/// Checks that row `row` of the batch has rows [begin, begin + kSteps] of the episode and, after
/// its last row, zeros.
void check_part(const TransitionSpec& spec, const RawEpisode& episode, const SequenceBatch& batch,
                std::size_t row, std::size_t begin) {
  const std::size_t bytes = spec.frame.bytes();
  const auto stack = static_cast<std::size_t>(spec.stack);
  const std::vector<std::byte> zeros(bytes);
  for (std::size_t k = 0; k <= kSteps; ++k) {
    const std::size_t t = begin + k;
    const bool played = t < episode.size();
    CHECK_EQ(batch.first[row * (kSteps + 1) + k], t == 0 || !played ? 1 : 0);
    for (std::size_t j = 0; j < stack; ++j) {
      const std::size_t back = stack - 1 - j;
      const auto& shown = played ? episode[t < back ? 0 : t - back].frame : zeros;
      const std::byte* got = &batch.observation[((row * (kSteps + 1) + k) * stack + j) * bytes];
      CHECK(std::equal(shown.begin(), shown.end(), got));
    }
    if (k == 0)
      continue;
    const std::size_t step = row * kSteps + k - 1;
    CHECK_EQ(batch.reward[step], played ? episode[t].reward : 0);
    CHECK_EQ(batch.discount[step], played ? episode[t].discount : 0);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK_EQ(batch.action[3 * step + i], played ? episode[t].action[i] : 0);
    CHECK_EQ(batch.pair[2 * step + 1], -static_cast<float>(batch.number[step]));
    CHECK_EQ(batch.number[step] > 0, played);
  }
}

TEST_CASE("Whole episodes are items, and longer ones are cut into several") {
  for (const int stack : {1, 3}) {
    CAPTURE(stack);
    TransitionSpec spec = sequence_spec(stack, 1);
    spec.whole_episodes = true;
    Table table({.sampler = {.kind = SelectorKind::fifo}, .max_times_sampled = 1}, spec, 4);
    MarkedSource source(spec);
    for (int i = 0; i < 300; ++i) {
      source.step();
      if (const InsertionPtr made = source.writer.take())
        table.insert(*made);
    }
    std::vector<RawEpisode>& episodes = source.player.episodes;
    if (source.writer.episode_rows() > 0) { // only its full parts are items
      const std::size_t parts = (episodes.back().size() - 1) / kSteps;
      episodes.back().resize(parts * kSteps + 1);
    }
    std::vector<Item> items;
    table.sample(table.stats().items, items);
    SequenceBatch batch(spec, items.size());
    gather(spec, items, batch.view(), 0);
    std::size_t row = 0, cut = 0;
    for (const RawEpisode& episode : episodes)
      for (std::size_t begin = 0; begin + 1 < episode.size(); begin += kSteps, ++row) {
        REQUIRE_LT(row, items.size());
        check_part(spec, episode, batch, row, begin);
        cut += begin > 0 ? 1 : 0;
      }
    CHECK_EQ(row, items.size());
    CHECK(row > 30);
    CHECK(cut > 5);
  }
}

TEST_CASE("An episode that its environment aborted makes no item") {
  TransitionSpec spec = sequence_spec(1, 1);
  spec.whole_episodes = true;
  Writer writer = transition_writer(spec, 1);
  const auto begin = [&] {
    std::ranges::fill(writer.next(kFrame), std::byte{1});
    begin_episode(writer);
  };
  const auto step = [&](bool last) {
    std::ranges::fill(writer.next(kFrame), std::byte{2});
    clear_extras(writer);
    append_step(writer, std::vector<float>{1, 2, 3}, 1, 1, last);
  };
  begin();
  step(false);
  begin(); // the first one was aborted
  CHECK_EQ(writer.pending_items(), 0);
  step(false);
  step(true);
  CHECK_EQ(writer.pending_items(), 1);
}

TEST_CASE("Sequences that do not fit are refused with an explanation") {
  TransitionSpec spec = sequence_spec(2, 4);
  SequenceBatch batch(spec, 3);
  BatchView view = batch.view();
  CHECK_THROWS_WITH_AS(check(spec, view, 1, 3), doctest::Contains("batch.observation"),
                       std::invalid_argument);
  view.extras.pop_back();
  CHECK_THROWS_WITH_AS(check(spec, view, 0, 3), doctest::Contains("batch.extras"),
                       std::invalid_argument);
  view = batch.view();
  view.first = view.first.first(5);
  CHECK_THROWS_WITH_AS(check(spec, view, 0, 3), doctest::Contains("batch.first"),
                       std::invalid_argument);
  spec.sequence_period = 0;
  CHECK_THROWS_WITH_AS(transition_writer(spec, 1), doctest::Contains("sequence_period is 0"),
                       std::invalid_argument);
  spec = sequence_spec(2, 4);
  spec.sequence_steps = 0;
  CHECK_THROWS_WITH_AS(transition_writer(spec, 1), doctest::Contains("extras"),
                       std::invalid_argument);
  CHECK(difference(sequence_spec(2, 4), sequence_spec(2, 5)) != "");
  TransitionSpec episodes = sequence_spec(2, 4);
  episodes.whole_episodes = true;
  CHECK(difference(sequence_spec(2, 4), episodes) != "");
  episodes.sequence_steps = 0;
  CHECK_THROWS_WITH_AS(transition_writer(episodes, 1), doctest::Contains("whole_episodes is true"),
                       std::invalid_argument);
}

TEST_CASE("A saved and loaded writer of sequences continues with the same items") {
  TransitionSpec spec = sequence_spec(2, 3);
  const auto taken = [&](int save_at) {
    MarkedSource source(spec);
    std::vector<std::uint64_t> all;
    for (int i = 0; i < 60; ++i) {
      source.step();
      if (i == 25)
        source.writer.restart_windows();
      if (i == save_at) {
        std::vector<std::byte> state;
        source.writer.save_state(state);
        Writer other = transition_writer(spec, 1, 16);
        other.load_state(state);
        source.writer = std::move(other);
      }
      if (i % 20 < 19)
        continue;
      const InsertionPtr made = source.writer.take();
      for (const Item& item : made->items)
        all.insert(all.end(), {item.key, item.rows, item.history});
    }
    return all;
  };
  CHECK(taken(-1) == taken(31));
  CHECK(taken(-1).size() == 3 * ((26 - 1 - kSteps) / 3 + 1 + (35 - 1 - kSteps) / 3 + 1));
  spec.whole_episodes = true;
  for (int save_at = 0; save_at < 60; save_at += 5)
    CHECK(taken(-1) == taken(save_at));
}

} // namespace
} // namespace troupe::replay
