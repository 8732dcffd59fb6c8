#include <atomic>
#include <mutex>
#include <thread>

#include <doctest/doctest.h>

#include "replay/table/shard.hpp"
#include "tests/replay/writers/episodes.hpp"

namespace troupe::replay {
namespace {

// The writer's thread appends rows to the chunk that other threads gather from. Under the thread
// sanitizer, this shows that published rows need no lock.
TEST_CASE("A writer appends while published rows of the same chunk are gathered") {
  const TransitionSpec spec = pixel_spec(3, 2);
  Shard shard({.max_items = 300, .limiter = {.minimum_items = 1, .error_buffer = 1e9}}, spec, 1);
  std::mutex mutex; // stands in for the mailbox of the shard's actor
  std::atomic<bool> done = false;
  std::atomic<int> gathered = 0;
  Player player(spec, 3);
  std::jthread producer([&] {
    Writer writer = transition_writer(spec, 1, 400);
    for (int i = 0; i < 3000; ++i) {
      player.step(writer);
      if (InsertionPtr made = writer.take()) {
        const std::scoped_lock lock(mutex);
        shard.insert(std::move(made), {});
      }
    }
    done = true;
  });
  std::vector<Batch> batches;
  std::jthread consumer([&] {
    do {
      std::vector<Item> items;
      {
        const std::scoped_lock lock(mutex);
        shard.table().sample(16, items);
      }
      if (items.empty())
        continue;
      Batch batch(spec, 16);
      gather(spec, items, batch.view(), 0);
      if (batches.size() < 200)
        batches.push_back(std::move(batch));
      ++gathered;
    } while (!done || gathered == 0);
  });
  producer.join();
  consumer.join();
  for (const Batch& batch : batches)
    for (std::size_t row = 0; row < batch.rows; ++row)
      player.check_row(batch, row);
  CHECK_GT(gathered, 0);
}

} // namespace
} // namespace troupe::replay
