#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "env/wrappers/frame_stack.hpp"
#include "experiments/bench/copied_bytes.hpp"
#include "experiments/bench/replay/replay_setup.hpp"
#include "learner/acting/collector.hpp"
#include "replay/batch/gather.hpp"
#include "replay/service/shard_client.hpp"
#include "replay/table/importance.hpp"

namespace troupe::experiments {

namespace {

using namespace replay_setup;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDeadline{60};
constexpr int kTurns = 512; // steps of one side before the other's turn

/// A full table, in which every further item removes one.
struct FullTable {
  FullTable(const Kind& kind, const replay::TableConfig& config)
      : table(config, kind.spec, 1), stream(kind, 1) {
    while (table.stats().items < kind.items)
      table.insert(*stream.next(kind.insert));
  }
  double insert(int each, int items) {
    double inserted = 0;
    for (int i = 0; i < items / each; ++i) {
      const auto insertion = stream.next(each);
      table.insert(*insertion);
      inserted += static_cast<double>(insertion->items.size());
    }
    return inserted;
  }
  replay::Table table;
  Stream stream;
};

/// With priorities the work is that of cpprb's and TorchRL's prioritized buffers: a batch with its
/// importance weights, then new priorities for the whole batch.
void bench_table(const BenchOptions& options, const Report& report, const Kind& kind,
                 bool by_priority) {
  const std::string name = by_priority ? "prioritized " : "";
  const auto rate = [&](const std::string& metric, const std::string& unit, auto&& chunk) {
    report_rate(options, report, kind, name + metric, unit, "pointer", chunk);
  };
  FullTable full(kind, by_priority ? prioritized(config_of(kind)) : config_of(kind));
  for (const int each : {1, kind.insert})
    rate("append+take+insert, " + std::to_string(each) + " at a time", "items/s",
         [&] { return full.insert(each, 1024); });
  Batch batch(kind.spec);
  std::vector<replay::Item> items;
  std::vector<double> probability(kBatch), priority(kBatch);
  std::vector<float> weight(kBatch);
  replay::Random random(7);
  const auto sample = [&] {
    full.table.sample(kBatch, items);
    auto view = batch.view();
    if (by_priority)
      view.probability = probability;
    replay::gather(kind.spec, items, view, 0);
    const replay::ShardRows part{.rows = kBatch, .table_items = kind.items};
    if (by_priority)
      replay::importance_weights(probability, {&part, 1}, 0.4, weight);
    return 1.0;
  };
  const auto update = [&] {
    for (double& one : priority)
      one = 0.1 + random.unit();
    full.table.update_priorities(batch.key, priority);
    return 1.0;
  };
  for (std::int64_t i = 0; by_priority && i < 4 * kind.items / kBatch; ++i) { // varied priorities
    full.table.sample(kBatch, items);
    for (std::size_t k = 0; k < batch.key.size(); ++k)
      batch.key[k] = items[k].key;
    update();
  }
  rate("sample+gather of 256", "batches/s", sample);
  if (by_priority)
    rate("sample+gather+update of 256", "batches/s", [&] {
      sample();
      return update();
    });
}

void bench_remote_table(const BenchOptions& options, const Report& report, const Kind& kind,
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
  for (const int each : {1, 16})
    rate("insert, " + std::to_string(each) + " at a time", "items/s", [&] {
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
    });
  Batch batch(kind.spec);
  rate("sample of 256", "items/s", [&] {
    if (!client.sample(kBatch, batch.view(), 0, Clock::now() + kDeadline))
      throw std::runtime_error("bench replay: no sample in time");
    return static_cast<double>(kBatch);
  });
}

/// The cost of writing per environment step into a full table, including the copy of the frame into
/// its place; interleaved with memcpy of the same frames into a ring as large as the table.
void bench_writing(const BenchOptions& options, const Report& report, const Kind& kind) {
  FullTable full(kind, config_of(kind));
  const std::size_t frame = full.stream.frame_bytes();
  std::vector<std::byte> ring(static_cast<std::size_t>(kind.items) * frame, std::byte{1});
  std::size_t at = 0;
  const auto step = [&] {
    for (int i = 0; i < kTurns; ++i) {
      full.stream.step();
      if (const auto insertion = full.stream.take())
        full.table.insert(*insertion);
    }
  };
  const auto copy = [&] {
    for (std::size_t i = 0; i < kTurns; ++i) {
      std::memcpy(&ring[at], full.stream.frame(i), frame);
      at = at + 2 * frame > ring.size() ? 0 : at + frame;
    }
  };
  std::vector<double> steps, ratios;
  for (int i = 0; i <= std::max(options.repetitions, 1); ++i) {
    double stepping = 0, copying = 0, count = 0;
    do {
      stepping += seconds_of(step);
      copying += seconds_of(copy);
      count += kTurns;
    } while (i > 0 && stepping + copying < options.seconds);
    if (i == 0)
      continue; // warms the caches
    steps.push_back(1e6 * stepping / count);
    ratios.push_back(stepping / copying);
  }
  report_values(report, "replay", kind.name + " step: frame copied, append, take, insert",
                "us/step", steps, {{"items", std::to_string(kind.items)}});
  report_values(report, "replay", kind.name + " step over memcpy into a ring of the table's size",
                "times", ratios, {{"items", std::to_string(kind.items)}});
}

/// A policy that ignores its observations.
struct Idle final : learner::Policy {
  std::int64_t parameter_count() const override { return 0; }
  void load(std::span<const float> /*parameters*/) override {}
  void act(const learner::Observations& /*observations*/, std::span<float> actions) override {
    std::ranges::fill(actions, 0.0F);
  }
};

/// The number of bytes that memcpy and memmove copy per frame, from the renderer's buffer into the
/// table, and per frame of a sampled batch. Frames are stacked in chunks or by the environment.
void bench_copies(const Report& report, Kind kind) {
  constexpr int kCopySteps = 200;
  kind.spec.action_size = 1;
  for (const bool stacked : {false, true}) {
    learner::Collector collector(
        {},
        [&](int) -> std::unique_ptr<env::Environment> {
          auto painted = std::make_unique<PaintedEnvironment>(kind.spec.frame);
          if (!stacked)
            return painted;
          return std::make_unique<env::FrameStack>(std::move(painted), kind.spec.stack);
        },
        std::make_unique<Idle>(), kind.spec);
    collector.load_parameters(1, {});
    replay::Table table(config_of(kind), kind.spec, 1);
    const auto acting = copied_bytes([&] {
      for (int i = 0; i < kCopySteps; ++i) {
        collector.choose_actions();
        collector.step_environments();
        if (const auto insertion = collector.take(0))
          table.insert(*insertion);
      }
    });
    const FigureConfig config{{"frame_bytes", std::to_string(kind.spec.frame.bytes())},
                              {"stacked", stacked ? "by the environment" : "in chunks"}};
    report_values(report, "replay", kind.name + " bytes copied per frame, renderer to table",
                  "bytes", {static_cast<double>(acting) / kCopySteps}, config);
    if (stacked)
      continue;
    Batch batch(kind.spec);
    std::vector<replay::Item> items;
    table.sample(kBatch, items);
    const auto gathering = copied_bytes([&] { replay::gather(kind.spec, items, batch.view(), 0); });
    report_values(report, "replay", kind.name + " bytes copied per frame of a batch", "bytes",
                  {static_cast<double>(gathering) / (2.0 * kBatch * kind.spec.stack)}, config);
  }
}

} // namespace

void bench_replay(const BenchOptions& options, const Report& report) {
  for (const Kind& kind : kinds()) {
    bench_table(options, report, kind, false);
    bench_table(options, report, kind, true);
    bench_writing(options, report, kind);
    if (kind.spec.stack > 1)
      bench_copies(report, kind);
    bench_remote_table(options, report, kind, std::nullopt);
    bench_remote_table(options, report, kind, env::wire::SharedMemory{});
    bench_shards(options, report, kind);
  }
}

} // namespace troupe::experiments
