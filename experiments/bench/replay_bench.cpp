#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/bench/replay_setup.hpp"
#include "replay/gather.hpp"
#include "replay/importance.hpp"
#include "replay/remote.hpp"

namespace troupe::experiments {

namespace {

using namespace replay_setup;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDeadline{60};

void bench_in_process(const BenchOptions& options, const Report& report, const Kind& kind) {
  const auto rate = [&](const std::string& metric, const std::string& unit, auto&& chunk) {
    report_rate(options, report, kind, metric, unit, "pointer", chunk);
  };
  replay::Table table(config_of(kind), kind.spec, 1);
  Stream stream(kind, 1);
  while (table.stats().items < kind.items) // full: from here on each item pushes one out
    table.insert(*stream.next(kind.insert));
  const auto insert = [&](int each) {
    return [&, each] {
      double items = 0;
      for (int i = 0; i < 1024 / each; ++i) {
        const auto insertion = stream.next(each);
        table.insert(*insertion);
        items += static_cast<double>(insertion->items.size());
      }
      return items;
    };
  };
  rate("append+take+insert, 1 at a time", "items/s", insert(1));
  rate("append+take+insert, 64 at a time", "items/s", insert(kind.insert));
  Batch batch(kind.spec);
  std::vector<replay::Item> items;
  rate("sample+gather of 256", "batches/s", [&] {
    table.sample(kBatch, items);
    replay::gather(kind.spec, items, batch.view(), 0);
    return 1.0;
  });
}

/// As cpprb's and TorchRL's prioritized buffers do: a batch with its importance weights, and then
/// new priorities for all of it.
void bench_prioritized(const BenchOptions& options, const Report& report, const Kind& kind) {
  const auto rate = [&](const std::string& metric, const std::string& unit, auto&& chunk) {
    report_rate(options, report, kind, metric, unit, "pointer", chunk);
  };
  replay::Table table(prioritized(config_of(kind)), kind.spec, 1);
  Stream stream(kind, 1);
  while (table.stats().items < kind.items)
    table.insert(*stream.next(kind.insert));
  for (const int each : {1, kind.insert})
    rate("prioritized append+take+insert, " + std::to_string(each) + " at a time", "items/s",
         [&, each] {
           double items = 0;
           for (int i = 0; i < 1024 / each; ++i) {
             const auto insertion = stream.next(each);
             table.insert(*insertion);
             items += static_cast<double>(insertion->items.size());
           }
           return items;
         });
  Batch batch(kind.spec);
  std::vector<replay::Item> items;
  std::vector<double> probability(kBatch), priority(kBatch);
  std::vector<float> weight(kBatch);
  replay::Random random(7);
  const auto sample = [&] {
    table.sample(kBatch, items);
    auto view = batch.view();
    view.probability = probability;
    replay::gather(kind.spec, items, view, 0);
    const replay::ShardRows part{.rows = kBatch, .table_items = kind.items};
    replay::importance_weights(probability, {&part, 1}, 0.4, weight);
    return 1.0;
  };
  const auto update = [&] {
    for (double& one : priority)
      one = 0.1 + random.unit();
    table.update_priorities(batch.key, priority);
    return 1.0;
  };
  for (std::int64_t i = 0; i < 4 * kind.items / kBatch; ++i) { // priorities of all sorts
    table.sample(kBatch, items);
    for (std::size_t k = 0; k < batch.key.size(); ++k)
      batch.key[k] = items[k].key;
    update();
  }
  rate("prioritized sample+gather of 256", "batches/s", sample);
  rate("prioritized sample+gather+update of 256", "batches/s", [&] {
    sample();
    return update();
  });
}

void bench_remote(const BenchOptions& options, const Report& report, const Kind& kind,
                  const Sharing& sharing) {
  const auto rate = [&](const std::string& metric, const std::string& unit, auto&& chunk) {
    report_rate(options, report, kind, metric, unit,
                sharing ? "shared memory, one client process"
                        : "ZeroMQ, tcp loopback, one client process",
                chunk);
  };
  const ServerProcess server(config_of(kind), kind.spec, sharing);
  env::wire::Context context;
  replay::ShardClient client(context, server.endpoint(), kind.spec, {.shared_memory = sharing});
  Stream stream(kind, 1);
  const auto insert = [&](int each) {
    return [&, each] {
      double items = 0;
      for (int i = 0; i < 256; ++i) {
        const auto insertion = stream.next(each);
        items += static_cast<double>(insertion->items.size());
        if (!client.insert(insertion, Clock::now() + kDeadline))
          throw std::runtime_error("bench replay: an insertion was not accepted in time");
      }
      if (!client.flush(Clock::now() + kDeadline))
        throw std::runtime_error("bench replay: insertions were not accepted in time");
      return items;
    };
  };
  rate("insert, 1 at a time", "items/s", insert(1));
  rate("insert, 16 at a time", "items/s", insert(16));
  Batch batch(kind.spec);
  rate("sample of 256", "items/s", [&] {
    if (!client.sample(kBatch, batch.view(), 0, Clock::now() + kDeadline))
      throw std::runtime_error("bench replay: no sample in time");
    return static_cast<double>(kBatch);
  });
}

} // namespace

void bench_replay(const BenchOptions& options, const Report& report) {
  for (const Kind& kind : kinds()) {
    bench_in_process(options, report, kind);
    bench_prioritized(options, report, kind);
    bench_remote(options, report, kind, std::nullopt);
    bench_remote(options, report, kind, env::wire::SharedMemory{});
  }
}

} // namespace troupe::experiments
