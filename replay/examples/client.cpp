// A replay client that links only troupe::replay. Given an endpoint, such as "tcp://127.0.0.1:7400"
// of `troupe replay serve --column state:float32:3 --column reward`, it uses that server; without
// one it runs a server itself.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <vector>

#include "replay/service/shard_client.hpp"
#include "replay/service/shard_host.hpp"
#include "replay/writers/writer.hpp"

using namespace troupe;

namespace {

replay::Deadline soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(10);
}

std::unique_ptr<replay::ShardHost> serve(env::wire::Context& context) {
  const replay::Signature steps{.columns = {{"state", env::ElementType::float32, {3}},
                                            {"reward", env::ElementType::float32, {}}},
                                .items = ""};
  const replay::TableConfig config{
      .max_items = 10'000,
      .sampler = {.kind = replay::SelectorKind::prioritized, .exponent = 0.6},
      .limiter = {.kind = replay::RateLimiterKind::minimum_size, .minimum_items = 20}};
  return std::make_unique<replay::ShardHost>(context, config, steps, /*seed=*/1);
}

void write(replay::ShardClient& client) {
  // No other writer of the server may have the same id, nor one before.
  replay::Writer writer(client.signature(), /*writer_id=*/std::random_device()(), {.reach = 4});
  for (int step = 0; step < 50; ++step) {
    const float state[] = {static_cast<float>(step), 0.5F, -0.5F};
    const float reward = 1;
    std::memcpy(writer.next(0).data(), state, sizeof state);
    std::memcpy(writer.next(1).data(), &reward, sizeof reward);
    writer.append();
    if (writer.rows() < 4)
      continue;
    writer.add_item(writer.rows() - 4, 4); // the last four steps
    if (!client.insert(writer.take(), soon()))
      throw std::runtime_error("the window stays full: " + client.info(soon()).why_waiting);
  }
  client.flush(soon());
}

/// Samples items and sets the priority of each to the sum of its four rewards.
void sample(replay::ShardClient& client) {
  const auto batch = client.sample(16, soon());
  if (!batch)
    throw std::runtime_error("no sample: " + client.info(soon()).why_waiting);
  std::vector<std::uint64_t> keys;
  std::vector<double> priorities;
  for (const replay::ColumnPart& part : batch->parts)
    for (std::size_t i = 0; i < part.items.size(); ++i) {
      float rewards[4];
      std::memcpy(rewards, part.rows(/*column=*/1, i).data(), sizeof rewards);
      keys.push_back(part.items[i].key);
      priorities.push_back(rewards[0] + rewards[1] + rewards[2] + rewards[3]);
    }
  client.update_priorities(keys, priorities, soon());
}

} // namespace

int main(int argc, char** argv) {
  try {
    env::wire::Context context;
    const auto own = argc > 1 ? nullptr : serve(context);
    auto client = replay::ShardClient::connect(context, own ? own->endpoint() : argv[1], soon());
    write(client);
    sample(client);
    const replay::TableStats stats = client.stats(soon());
    std::printf("%lld items, %lld sampled, %lld priorities updated\n",
                static_cast<long long>(stats.items), static_cast<long long>(stats.sampled),
                static_cast<long long>(stats.updated_priorities));
    return stats.sampled >= 16 && stats.updated_priorities >= 16 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
