#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "experiments/bench/replay_setup.hpp"
#include "replay/remote.hpp"
#include "replay/sequence_writer.hpp"

namespace troupe::experiments {

namespace {

using namespace replay_setup;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDeadline{60};
constexpr int kWriters = 2;
constexpr int kSamplers = 2;
constexpr int kMeans = 60;          // of what comes after the warm-up
constexpr double kWarmUp = 1.0 / 6; // of the whole time

replay::Signature soak_signature() {
  return {.columns = {{"pixels", env::ElementType::uint8, {3, 64, 64}},
                      {"action", env::ElementType::float32, {6}},
                      {"reward", env::ElementType::float32, {}}},
          .items = "sequences of up to 20"};
}

replay::TableConfig soak_config() {
  return {.max_items = 4'000,
          .max_bytes = std::int64_t{256} << 20,
          .sampler = {.kind = replay::SelectorKind::prioritized, .exponent = 0.6},
          .compression = replay::Compression::automatic,
          .limiter = {.min_items = 100, .samples_per_insert = 8, .error_buffer = 20'000}};
}

/// Threads that write or sample until they are told to stop, or one of them fails.
class Load {
public:
  explicit Load(const std::string& endpoint) {
    for (std::uint64_t i = 0; i < kWriters; ++i)
      threads_.emplace_back([this, endpoint, i] { guard([&] { write(endpoint, i + 1); }); });
    for (std::uint64_t i = 0; i < kSamplers; ++i)
      threads_.emplace_back([this, endpoint, i] { guard([&] { sample(endpoint, i + 1); }); });
  }
  ~Load() { stop_ = true; }

  /// Throws what a thread threw.
  void check() {
    const std::scoped_lock lock(mutex_);
    if (failure_)
      std::rethrow_exception(failure_);
  }
  std::int64_t written() const { return written_; } // items
  std::int64_t sampled() const { return sampled_; }

private:
  void guard(const std::function<void()>& body) {
    try {
      body();
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      failure_ = std::current_exception();
      stop_ = true;
    }
  }

  void write(const std::string& endpoint, std::uint64_t id) {
    replay::ShardClient client(context_, endpoint, soak_signature());
    replay::SequenceWriter writer(
        soak_signature(), id,
        {.length = 20, .period = 10, .burn_in = 4, .end = replay::EpisodeEnd::shorten});
    replay::Random random(id);
    std::vector<std::byte> picture(std::size_t{3} * 64 * 64, std::byte{40});
    while (!stop_) {
      const std::uint64_t steps = 5 + random.below(60);
      for (std::uint64_t step = 0; step < steps; ++step) {
        for (int i = 0; i < 300; ++i) // what moves; the rest stays as it is
          picture[random.below(picture.size())] = static_cast<std::byte>(random.next());
        std::ranges::copy(picture, writer.next(0).begin());
        for (std::byte& byte : writer.next(1))
          byte = static_cast<std::byte>(random.below(60));
        std::ranges::fill(writer.next(2), std::byte{0});
        writer.append(step + 1 == steps);
      }
      const replay::InsertionPtr made = writer.take();
      if (!made)
        continue;
      const auto items = static_cast<std::int64_t>(made->items.size());
      while (!stop_ && !client.insert(made, Clock::now() + kDeadline)) {
      }
      written_ += items;
    }
  }

  void sample(const std::string& endpoint, std::uint64_t seed) {
    replay::ShardClient client(context_, endpoint, soak_signature());
    replay::Random random(1000 + seed);
    std::vector<std::uint64_t> keys;
    std::vector<double> priorities;
    while (!stop_) {
      const auto batch = client.sample(32, Clock::now() + kDeadline);
      if (!batch)
        continue;
      keys.clear();
      priorities.clear();
      for (const replay::ColumnPart& part : batch->parts)
        for (const replay::SampledItem& item : part.items) {
          keys.push_back(item.key);
          priorities.push_back(0.01 + random.unit());
        }
      client.update_priorities(keys, priorities, Clock::now() + kDeadline);
      sampled_ += batch->items();
    }
  }

  env::wire::Context context_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::int64_t> written_ = 0;
  std::atomic<std::int64_t> sampled_ = 0;
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_; // last: they end first
};

/// The 0.975 quantile of Student's distribution with `n` degrees of freedom, to 1e-3 from 5 on
/// (Cornish and Fisher's expansion).
double student(double n) {
  constexpr double z = 1.959964;
  return z + (std::pow(z, 3) + z) / (4 * n)
         + (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * n * n);
}

/// The slope of a straight line through (x, y) and half of its 95 % interval.
std::pair<double, double> slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double mean_x = 0;
  double mean_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  double xx = 0;
  double xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double rest = y[i] - mean_y - xy / xx * (x[i] - mean_x);
    squares += rest * rest;
  }
  return {xy / xx, student(n - 2) * std::sqrt(squares / (n - 2) / xx)};
}

struct Memory { // of one process
  std::string whose;
  pid_t process;
  std::vector<double> means; // MB
};

} // namespace

/// Two writers of sequences of variable length and two samplers with new priorities against a
/// compressed, prioritized shard that is full, in a process of its own: does memory grow?
void bench_replay_soak(const BenchOptions& options, const Report& report) {
  if (options.soak_minutes <= 0)
    return;
  const ServerProcess server(soak_config(), soak_signature(), env::wire::SharedMemory{});
  Load load(server.endpoint());
  const double warm_up = 60 * options.soak_minutes * kWarmUp;
  const double each = 60 * options.soak_minutes * (1 - kWarmUp) / kMeans;
  const auto begin = Clock::now();
  const auto now = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Memory memory[] = {{"shard", server.process(), {}}, {"clients", ::getpid(), {}}};
  std::vector<double> hours;
  while (now() < warm_up) {
    load.check();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (int mean = 0; mean < kMeans; ++mean) {
    double sums[2] = {};
    double count = 0;
    while (now() < warm_up + (mean + 1) * each) {
      load.check();
      for (std::size_t i = 0; i < 2; ++i)
        sums[i] += resident_bytes(memory[i].process) / 1e6;
      ++count;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    hours.push_back((warm_up + (mean + 0.5) * each) / 3600);
    for (std::size_t i = 0; i < 2; ++i)
      memory[i].means.push_back(sums[i] / std::max(count, 1.0));
  }
  const std::string minutes = std::to_string(options.soak_minutes);
  for (const Memory& one : memory) {
    const auto [value, half] = slope(hours, one.means);
    Figure figure{.bench = "replay_soak",
                  .metric = "slope of the memory of the " + one.whose + " (95 % interval)",
                  .value = value,
                  .minimum = value - half,
                  .maximum = value + half,
                  .unit = "MB/hour",
                  .config = {{"minutes", minutes}}};
    report(figure);
    figure = median_of(one.means);
    figure.bench = "replay_soak";
    figure.metric = "memory of the " + one.whose;
    figure.unit = "MB";
    figure.config = {{"minutes", minutes}};
    report(figure);
  }
  for (const auto& [what, count] :
       {std::pair{"written", load.written()}, std::pair{"sampled", load.sampled()}}) {
    Figure figure = median_of({static_cast<double>(count) / now()});
    figure.bench = "replay_soak";
    figure.metric = std::string("items ") + what;
    figure.unit = "items/s";
    figure.config = {{"minutes", minutes}};
    report(figure);
  }
}

} // namespace troupe::experiments
