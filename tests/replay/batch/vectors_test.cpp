// Observations with vectors in addition to the frames, and transitions with running returns.
#include <doctest/doctest.h>

#include "replay/recordings/recording.hpp"
#include "replay/service/shard_client.hpp"
#include "replay/service/shard_host.hpp"
#include "replay/table/table.hpp"
#include "tests/replay/service/service_tests.hpp"
#include "tests/replay/writers/episodes.hpp"
#include "tests/temporary_folder.hpp"

namespace troupe::replay {
namespace {

TransitionSpec both_spec(int stack, int n_step) {
  TransitionSpec spec = pixel_spec(stack, n_step);
  spec.vectors = {{"position", env::ElementType::float32, {3}},
                  {"touch", env::ElementType::float32, {1}}};
  return spec;
}

TEST_CASE(
    "Vectors are gathered with the newest frame of each observation, and running returns too") {
  for (const int stack : {1, 3})
    for (const int n_step : {1, 2, 5}) // with more steps than frames, not every row is shown
      for (const Compression compression : {Compression::none, Compression::zstd}) {
        CAPTURE(stack);
        CAPTURE(n_step);
        TransitionSpec spec = both_spec(stack, n_step);
        spec.running_return = true;
        Table table({.sampler = {.kind = SelectorKind::fifo}, .compression = compression}, spec, 4);
        Source source(spec);
        table.insert(*source.next(300));
        std::vector<Item> items;
        table.sample(200, items);
        Batch batch(spec, 201);
        gather(spec, items, batch.view(), 1);
        for (std::size_t row = 1; row < batch.rows; ++row)
          source.player.check_row(batch, row);
      }
}

TEST_CASE("A running return is discounted, and each episode begins with 0") {
  TransitionSpec spec = state_spec(1, 1);
  spec.discount = 0.5;
  spec.running_return = true;
  const std::vector<float> action(static_cast<std::size_t>(spec.action_size));
  const auto begin = [](Writer& writer) {
    std::ranges::fill(writer.next(kFrame), std::byte{0});
    begin_episode(writer);
  };
  const auto step = [&](Writer& writer, float reward, bool last) {
    std::ranges::fill(writer.next(kFrame), std::byte{0});
    append_step(writer, action, reward, 1, last);
  };
  Writer writer = transition_writer(spec, 1, 16);
  begin(writer);
  step(writer, 1, false);
  step(writer, 2, true);
  begin(writer); // this episode's environment fails
  step(writer, 4, false);
  begin(writer);
  step(writer, -8, false);
  std::vector<std::byte> state;
  writer.save_state(state);
  Writer loaded = transition_writer(spec, 1, 16);
  loaded.load_state(state);
  step(loaded, 16, true);
  const InsertionPtr made = loaded.take();
  Batch batch(spec, 5);
  REQUIRE(made->items.size() == 5);
  gather(spec, made->items, batch.view(), 0);
  CHECK(batch.running_return == std::vector<float>{1, 2.5F, 4, -8, 12});
}

TEST_CASE("Running returns are of transitions without hindsight") {
  TransitionSpec spec = state_spec(1, 1);
  spec.running_return = true;
  check(spec);
  Batch without(state_spec(1, 1), 3);
  CHECK_THROWS_WITH_AS(check(spec, without.view(), 0, 3), doctest::Contains("batch.running_return"),
                       std::invalid_argument);
  CHECK(difference(spec, state_spec(1, 1)) != "");
  spec.sequence_steps = 3;
  CHECK_THROWS_WITH_AS(check(spec), doctest::Contains("running_return is true"),
                       std::invalid_argument);
}

TEST_CASE("A client receives the vectors and running returns that a table gathers") {
  for (const int n_step : {1, 5}) {
    CAPTURE(n_step);
    TransitionSpec spec = both_spec(2, n_step);
    spec.running_return = true;
    env::wire::Context context;
    ShardHost served(context, kFree, spec, 4);
    ShardClient client(context, served.endpoint(), spec);
    Source source(spec);
    for (int i = 0; i < 10; ++i)
      REQUIRE(client.insert(source.next(20), soon()));
    REQUIRE(client.flush(soon()));
    Batch batch(spec, 64);
    REQUIRE_EQ(client.sample(64, batch.view(), 0, soon()), 64);
    for (std::size_t row = 0; row < 64; ++row)
      source.player.check_row(batch, row);
    CHECK_EQ(served.counters().garbage, 0);
  }
}

TEST_CASE("Sequences show the vectors of each row, both from a table and from a client") {
  TransitionSpec spec = both_spec(2, 1);
  spec.sequence_steps = 4;
  spec.sequence_period = 2;
  spec.extras = {{"value", env::ElementType::float32, {}}};
  env::wire::Context context;
  ShardHost served(context, kFree, spec, 4);
  ShardClient client(context, served.endpoint(), spec);
  Table table(kFree, spec, 99);
  Writer writer = transition_writer(spec, 1, 16);
  Player player(spec, 5);
  for (int i = 0; i < 200; ++i) {
    const float value = static_cast<float>(i);
    std::memcpy(writer.next(writer.layout().place(kExtras)).data(), &value, sizeof value);
    player.step(writer);
    if (const InsertionPtr made = writer.take()) {
      table.insert(*made);
      REQUIRE(client.insert(made, soon()));
    }
  }
  REQUIRE(client.flush(soon()));
  constexpr std::size_t kItems = 40, kRows = kItems * 5;
  std::vector<std::byte> observation(kRows * spec.observation().bytes());
  std::vector<float> action(kItems * 4 * 3), reward(kItems * 4), discount(kItems * 4);
  std::vector<float> value(kItems * 4), position(kRows * 3), touch(kRows);
  std::vector<std::uint64_t> key(kItems);
  std::vector<std::uint8_t> first(kRows);
  const BatchView view{.observation = observation,
                       .next_observation = {},
                       .action = action,
                       .reward = reward,
                       .discount = discount,
                       .key = key,
                       .first = first,
                       .extras = {std::as_writable_bytes(std::span(value))},
                       .vectors = {std::as_writable_bytes(std::span(position)),
                                   std::as_writable_bytes(std::span(touch))}};
  const auto check_rows = [&] {
    for (std::size_t row = 0; row < kRows; ++row) {
      std::uint32_t place[2]; // of the newest frame
      std::memcpy(place, &observation[(row + 1) * spec.observation().bytes() - spec.frame.bytes()],
                  sizeof place);
      CHECK(position[3 * row + 2] == player.vector_of(0, place[0], place[1])[2]);
      CHECK(touch[row] == player.vector_of(1, place[0], place[1])[0]);
      CHECK((first[row] != 0) == (place[1] == 0));
    }
  };
  REQUIRE_EQ(client.sample(kItems, view, 0, soon()), kItems);
  check_rows();
  std::ranges::fill(position, -1.0F);
  std::ranges::fill(touch, -1.0F);
  std::vector<Item> items;
  table.sample(kItems, items);
  REQUIRE_EQ(items.size(), kItems);
  gather(spec, items, view, 0);
  check_rows();
}

TEST_CASE("Recorded episodes keep their vectors and refuse steps with other vectors") {
  const TemporaryFolder folder;
  const TransitionSpec spec = both_spec(1, 1);
  Source source(spec);
  RecordingWriter recorder(folder.path() / "both", recording_of(spec));
  EpisodeJoiner joiner(recording_of(spec));
  std::size_t ended = 0;
  const auto keep = [&](const Episode& episode) {
    recorder.add(episode);
    ++ended;
  };
  joiner.add(*source.next(200), keep);
  recorder.commit();
  const Recording recording(folder.path() / "both");
  CHECK(recording.spec() == recording_of(spec));
  REQUIRE(recording.episodes().size() == ended);
  REQUIRE(ended > 3);
  for (std::size_t i = 0; i < ended; ++i) {
    const Episode episode = recording.read(i);
    for (std::int64_t row = 0; row < episode.rows(); ++row)
      for (std::size_t v = 0; v < 2; ++v) {
        const auto wanted = source.player.vector_of(v, static_cast<std::uint32_t>(i + 1),
                                                    static_cast<std::uint32_t>(row));
        const auto bytes = std::as_bytes(std::span(wanted));
        CHECK(std::ranges::equal(episode.vector(row, v), bytes));
      }
  }
  Writer again = transition_writer(spec, 2, 12);
  recording.read(0).write(again);
  CHECK(again.pending_items() == recording.episodes()[0].steps);

  Episode bad(recording_of(spec));
  const std::vector<std::byte> frame(spec.frame.bytes());
  CHECK_THROWS_WITH_AS(bad.begin(frame), doctest::Contains("0 vectors"), std::invalid_argument);
  TransitionSpec other = spec;
  other.vectors[1].name = "contact";
  CHECK_THROWS_WITH_AS(check_fits(recording.spec(), other, "both"), doctest::Contains("contact"),
                       std::invalid_argument);
  other.vectors[1].type = env::ElementType::uint8;
  CHECK_THROWS_WITH_AS(check(other), doctest::Contains("float32"), std::invalid_argument);
}

} // namespace
} // namespace troupe::replay
