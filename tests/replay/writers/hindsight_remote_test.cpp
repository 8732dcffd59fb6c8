#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

#include "replay/service/shard_client.hpp"
#include "replay/service/shard_host.hpp"
#include "replay/writers/hindsight_items.hpp"

namespace troupe::replay {
namespace {

enum Column : std::size_t { kPixels, kAchieved, kGoal };

float number(std::span<const std::byte> bytes) {
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

TEST_CASE(
    "A client receives relabelled items with their goals and with pictures that were sent once") {
  const Signature steps{.columns = {{"pixels", env::ElementType::uint8, {3, 8, 8}},
                                    {"achieved", env::ElementType::float32, {}},
                                    {"goal", env::ElementType::float32, {}}},
                        .items = "goals"};
  const HindsightOptions options{
      .columns = {"goal"}, .rows = {1, 1}, .strategy = GoalStrategy::final};
  Writer writer = hindsight_writer(steps, 1, options, [](const Relabelling& item) {
    std::ranges::copy(item.at(item.goal(), kAchieved), item.replace(item.first(), kGoal).begin());
    return 1.0;
  });
  for (float step = 0; step < 20; ++step) {
    std::ranges::fill(writer.next(kPixels), static_cast<std::byte>(step));
    std::memcpy(writer.next(kAchieved).data(), &step, sizeof step);
    const float none = -1;
    std::memcpy(writer.next(kGoal).data(), &none, sizeof none);
    writer.append_step(step == 19);
  }
  const HindsightLayout layout(steps, options);
  env::wire::Context context;
  ShardHost host(context, {}, layout.signature(), 4);
  ShardClient client(context, host.endpoint(), layout.signature());
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const InsertionPtr made = writer.take();
  CHECK_EQ(made->items.size(), 19 * 5);
  std::uint32_t rows = 0; // that are sent: all items share them
  for (const ChunkRows& part : made->rows)
    rows += part.count;
  CHECK_EQ(rows, 20);
  REQUIRE(client.insert(made, soon));
  const auto batch = client.sample(200, soon);
  REQUIRE(batch);
  std::vector<int> lanes(5);
  for (const ColumnPart& part : batch->parts)
    for (std::size_t i = 0; i < part.items.size(); ++i) {
      const int lane = layout.lane(part, i);
      ++lanes.at(static_cast<std::size_t>(lane + 1));
      const float first = number(part.rows(kAchieved, i));
      CHECK_EQ(part.rows(kPixels, i)[0], static_cast<std::byte>(first));
      CHECK_EQ(part.rows(kPixels, i)[192], static_cast<std::byte>(first + 1));
      const auto goal = part.rows(layout.column(kGoal, lane), i);
      CHECK_EQ(goal.size(), lane < 0 ? 8 : 4); // both rows, or only the relabelled one
      CHECK_EQ(number(goal), lane < 0 ? -1 : 19);
    }
  for (const int count : lanes)
    CHECK_GT(count, 10);
}

} // namespace
} // namespace troupe::replay
