#include <algorithm>

#include <doctest/doctest.h>

#include "replay/batch/gather.hpp"
#include "replay/table/shard.hpp"
#include "replay/writers/n_step_items.hpp"

namespace troupe::replay {
namespace {

// The worked example of replay/README.md.
TEST_CASE("An environment's steps become batches of n-step transitions") {
  const TransitionSpec spec{.frame = {"pixels", env::ElementType::uint8, {3, 84, 84}},
                            .stack = 3,
                            .action_size = 2,
                            .n_step = 3,
                            .discount = 0.99};
  Writer writer = transition_writer(spec, /*writer_id=*/7);
  Shard shard({.max_items = 10'000,
               .limiter = {.minimum_items = 20, .samples_per_insert = 32, .error_buffer = 640}},
              spec, /*seed=*/1);

  bool answered = false;
  shard.sample(16, [&](const std::vector<Item>& items) { // waits for minimum_items
    std::vector<std::byte> observation(16 * spec.observation().bytes());
    std::vector<std::byte> next_observation(observation.size());
    std::vector<float> action(32);
    std::vector<float> reward(16);
    std::vector<float> discount(16);
    std::vector<std::uint64_t> key(16);
    gather(spec, items, {observation, next_observation, action, reward, discount, key}, 0);
    CHECK_EQ(reward[0], doctest::Approx(1 + 0.99 + 0.99 * 0.99));
    answered = true;
  });

  const auto render = [](std::span<std::byte> frame) { frame[0] = std::byte{255}; };
  const std::vector<float> chosen{0.5F, -0.5F};
  render(writer.next(kFrame));
  begin_episode(writer);
  for (int step = 0; step < 30; ++step) {
    render(writer.next(kFrame));
    append_step(writer, chosen, /*reward=*/1, /*discount=*/1, /*last=*/false);
    if (InsertionPtr insertion = writer.take())
      shard.insert(std::move(insertion), [] {});
  }
  CHECK(answered);
}

TEST_CASE("Steps with any columns become overlapping sequences") {
  Writer writer({.columns = {{"pixels", env::ElementType::uint8, {3, 8, 8}},
                             {"action", env::ElementType::float32, {6}}},
                 .items = "sequences of 80, burn-in 20"},
                /*writer_id=*/7, {.reach = 80});
  Table table({.max_items = 100}, writer.layout().signature, /*seed=*/1);
  for (int step = 0; step < 400; ++step) {
    std::ranges::fill(writer.next(0), static_cast<std::byte>(step % 256));
    std::ranges::fill(writer.next(1), std::byte{0});
    writer.append();
    if (writer.rows() >= 80 && writer.rows() % 40 == 0)
      writer.add_item(writer.rows() - 80, 80, /*history=*/20); // they overlap by half
    if (const InsertionPtr insertion = writer.take())
      table.insert(*insertion);
  }
  CHECK_EQ(table.stats().items, 9);
  std::vector<Item> items;
  table.sample(20, items);
  for (const Item& item : items) {
    CHECK_EQ(item.rows, 80);
    CHECK_EQ(item.history, 20);
    for (std::uint32_t k = 1; k < item.rows; ++k)
      REQUIRE_EQ(static_cast<int>(*item.row(k)), (static_cast<int>(*item.row(k - 1)) + 1) % 256);
  }
}

} // namespace
} // namespace troupe::replay
