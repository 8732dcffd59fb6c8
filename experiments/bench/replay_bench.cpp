#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "experiments/bench/bench.hpp"
#include "replay/gather.hpp"
#include "replay/importance.hpp"
#include "replay/shard_host.hpp"
#include "replay/table.hpp"
#include "replay/writer.hpp"

namespace troupe::experiments {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kBatch = 256;
constexpr int kEpisode = 1000; // steps
constexpr std::chrono::seconds kDeadline{60};

/// What is measured: the same items as of the peers (24 floats and 6 actions; 84x84x9 pixels, which
/// are three stacked frames), with the size of the table.
struct Kind {
  std::string name;
  replay::TransitionSpec spec;
  std::int64_t items;
  int insert; // items per insertion where they come in batches
};

std::vector<Kind> kinds() {
  return {
      {"state",
       {.frame = {"state", env::ElementType::float32, {24}}, .action_size = 6},
       1'000'000,
       64},
      {"pixel",
       {.frame = {"pixels", env::ElementType::uint8, {3, 84, 84}}, .stack = 3, .action_size = 6},
       10'000,
       64}};
}

replay::TableConfig config_of(const Kind& kind) {
  return {.max_items = kind.items,
          .max_bytes = std::int64_t{8} << 30,
          .limiter = {.error_buffer = 1e15}};
}

/// A stream of time steps; frames are copied into their place as a renderer would write them.
class Stream {
public:
  Stream(const Kind& kind, std::uint64_t writer_id)
      : writer_(kind.spec, writer_id),
        action_(static_cast<std::size_t>(kind.spec.action_size), 0.5F) {
    const std::size_t bytes = kind.spec.frame.bytes();
    frames_.resize(kFrames * bytes);
    for (std::size_t i = 0; i < frames_.size(); ++i)
      frames_[i] = static_cast<std::byte>((i * 2654435761U) >> 13U & 0x3fU);
  }

  void step() {
    const auto frame = writer_.next_frame();
    std::memcpy(frame.data(), &frames_[static_cast<std::size_t>(step_) % kFrames * frame.size()],
                frame.size());
    if (step_ == 0)
      writer_.begin();
    else
      writer_.append(action_, 1, 1, step_ == kEpisode);
    step_ = step_ == kEpisode ? 0 : step_ + 1;
  }

  replay::InsertionPtr next(std::int64_t items) {
    while (writer_.pending_items() < items)
      step();
    return writer_.take();
  }

private:
  static constexpr std::size_t kFrames = 64;
  replay::TransitionWriter writer_;
  std::vector<float> action_;
  std::vector<std::byte> frames_;
  int step_ = 0;
};

struct Batch {
  explicit Batch(const replay::TransitionSpec& spec)
      : observation(kBatch * spec.observation().bytes()),
        next_observation(observation.size()),
        action(kBatch * static_cast<std::size_t>(spec.action_size)),
        reward(kBatch),
        discount(kBatch),
        key(kBatch) {}
  replay::BatchView view() {
    return {observation, next_observation, action, reward, discount, key};
  }
  std::vector<std::byte> observation, next_observation;
  std::vector<float> action, reward, discount;
  std::vector<std::uint64_t> key;
};

void report_rate(const BenchOptions& options, const Report& report, const Kind& kind,
                 const std::string& metric, const std::string& unit, const std::string& where,
                 const std::function<double()>& chunk) {
  Figure figure = measure_rate(options, "replay", kind.name + " " + metric, unit, chunk);
  figure.config = {{"items", std::to_string(kind.items)}, {"transport", where}};
  report(figure);
}

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

replay::TableConfig prioritized(replay::TableConfig config) {
  config.sampler = {.kind = replay::SelectorKind::prioritized, .exponent = 0.6};
  return config;
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

/// What a larger table costs: items of one float, so that 10^7 fit anywhere, in one chunk row each.
void bench_sizes(const BenchOptions& options, const Report& report) {
  for (const std::int64_t items : {10'000, 100'000, 1'000'000, 10'000'000}) {
    const Kind kind{
        "small", {.frame = {"state", env::ElementType::float32, {1}}, .action_size = 1}, items, 64};
    for (const bool by_priority : {false, true}) {
      const replay::TableConfig config = config_of(kind);
      replay::Table table(by_priority ? prioritized(config) : config, kind.spec, 1);
      Stream stream(kind, 1);
      while (table.stats().items < items)
        table.insert(*stream.next(1024));
      std::vector<replay::Item> sampled;
      const std::string name = by_priority ? "prioritized " : "";
      const auto rate = [&](const std::string& metric, auto&& chunk) {
        report_rate(options, report, kind, name + metric, "items/s", "pointer", chunk);
      };
      rate("sample of 256", [&] {
        table.sample(kBatch, sampled);
        return static_cast<double>(kBatch);
      });
      if (!by_priority)
        continue;
      std::vector<std::uint64_t> key(kBatch);
      std::vector<double> priority(kBatch);
      replay::Random random(7);
      const auto first = static_cast<std::uint64_t>(table.stats().inserted - items);
      rate("update of 256", [&] {
        for (std::size_t i = 0; i < key.size(); ++i) {
          key[i] = first + random.below(static_cast<std::uint64_t>(items));
          priority[i] = 0.1 + random.unit();
        }
        table.update_priorities(key, priority);
        return static_cast<double>(kBatch);
      });
    }
  }
}

using Sharing = std::optional<env::wire::SharedMemory>;

/// A shard with its data port in a process of its own, ended with this object.
class ServerProcess {
public:
  ServerProcess(const Kind& kind, const Sharing& sharing) {
    int ends[2] = {-1, -1};
    if (::pipe(ends) != 0 || (process_ = ::fork()) < 0)
      throw std::runtime_error(std::string("bench replay: ") + std::strerror(errno));
    if (process_ == 0) {
      ::close(ends[0]);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      serve(kind, sharing, ends[1]);
    }
    ::close(ends[1]);
    char text[256] = {};
    const auto size = ::read(ends[0], text, sizeof text - 1);
    ::close(ends[0]);
    if (size <= 0)
      throw std::runtime_error("bench replay: the server process did not start");
    endpoint_ = text;
  }
  ~ServerProcess() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  const std::string& endpoint() const { return endpoint_; }

private:
  [[noreturn]] static void serve(const Kind& kind, const Sharing& sharing, int out) {
    try {
      env::wire::Context context;
      const replay::ShardHost host(context, config_of(kind), kind.spec, 1,
                                   {.server = {.shared_memory = sharing}});
      if (::write(out, host.endpoint().data(), host.endpoint().size()) > 0)
        for (;;)
          ::pause();
    } catch (const std::exception&) { // the parent sees the closed pipe
    }
    ::_exit(1);
  }

  pid_t process_ = -1;
  std::string endpoint_;
};

void bench_remote(const BenchOptions& options, const Report& report, const Kind& kind,
                  const Sharing& sharing) {
  const auto rate = [&](const std::string& metric, const std::string& unit, auto&& chunk) {
    report_rate(options, report, kind, metric, unit,
                sharing ? "shared memory, one client process"
                        : "ZeroMQ, tcp loopback, one client process",
                chunk);
  };
  const ServerProcess server(kind, sharing);
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
  bench_sizes(options, report);
}

} // namespace troupe::experiments
