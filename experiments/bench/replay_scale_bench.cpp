#include <cstdint>
#include <string>
#include <vector>

#include "experiments/bench/replay_setup.hpp"

namespace troupe::experiments {

namespace {

using namespace replay_setup;

/// Nanoseconds per item of what `chunk` does for `items` items.
Figure cost(const BenchOptions& options, const Kind& kind, const std::string& metric,
            const std::function<double()>& chunk) {
  Figure rate = measure_rate(options, "replay_scale", metric, "ns/item", chunk);
  const auto invert = [](double per_second) { return 1e9 / per_second; };
  const double least = invert(rate.maximum);
  rate.maximum = invert(rate.minimum);
  rate.minimum = least;
  rate.value = invert(rate.value);
  rate.config = {{"items", std::to_string(kind.items)}};
  return rate;
}

void measure(const BenchOptions& options, const Report& report, std::int64_t items,
             bool by_priority) {
  const Kind kind{
      "small", {.frame = {"state", env::ElementType::float32, {1}}, .action_size = 1}, items, 64};
  const replay::TableConfig config = config_of(kind);
  replay::Table table(by_priority ? prioritized(config) : config, kind.spec, 1);
  Stream stream(kind, 1);
  while (table.stats().items < items)
    table.insert(*stream.next(1024));
  const std::string name = by_priority ? "prioritized " : "uniform ";
  std::vector<replay::Item> sampled;
  std::vector<std::uint64_t> key(kBatch);
  std::vector<double> priority(kBatch);
  replay::Random random(7);
  const auto first = static_cast<std::uint64_t>(table.stats().inserted - items);
  const auto update = [&] {
    for (std::size_t i = 0; i < key.size(); ++i) {
      key[i] = first + random.below(static_cast<std::uint64_t>(items));
      priority[i] = 0.1 + random.unit();
    }
    table.update_priorities(key, priority);
    return static_cast<double>(kBatch);
  };
  for (std::int64_t i = 0; by_priority && i < 2 * items / kBatch; ++i)
    update(); // priorities of all sorts
  report(cost(options, kind, name + "sample of 256", [&] {
    table.sample(kBatch, sampled);
    return static_cast<double>(kBatch);
  }));
  if (by_priority)
    report(cost(options, kind, name + "update of 256", update));
  report(cost(options, kind, name + "append+take+insert, 64 at a time", [&] {
    double inserted = 0;
    for (int i = 0; i < 16; ++i) {
      const auto insertion = stream.next(kind.insert);
      table.insert(*insertion);
      inserted += static_cast<double>(insertion->items.size());
    }
    return inserted;
  }));
}

} // namespace

/// What a larger table costs: items of one float, so that 10^7 fit anywhere, in one row each.
void bench_replay_scale(const BenchOptions& options, const Report& report) {
  for (const std::int64_t items :
       {10'000, 31'623, 100'000, 316'228, 1'000'000, 3'162'278, 10'000'000})
    for (const bool by_priority : {false, true})
      measure(options, report, items, by_priority);
}

} // namespace troupe::experiments
