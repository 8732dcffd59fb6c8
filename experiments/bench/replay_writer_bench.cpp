#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "experiments/bench/replay_setup.hpp"

namespace troupe::experiments {

namespace {

using namespace replay_setup;
using Clock = std::chrono::steady_clock;

constexpr int kTurns = 512; // steps of each side before the other's turn

double seconds_of(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// One repetition: what is measured and what it is compared with take turns, so that both see the
/// same machine.
struct Costs {
  std::vector<double> step, copy, hot_copy, ratio; // microseconds per step or frame
};

class WriterCost {
public:
  WriterCost(const Kind& kind, int each)
      : table_(config_of(kind), kind.spec, 1),
        stream_(kind, 1),
        each_(each),
        ring_(static_cast<std::size_t>(kind.items) * stream_.frame_bytes()),
        hot_(stream_.frame_bytes()) {
    while (table_.stats().items < kind.items) // full: memory is used again from here on
      table_.insert(*stream_.next(64));
    std::ranges::fill(ring_, std::byte{1});
  }

  void measure(double seconds, Costs& costs) {
    double step = 0;
    double copy = 0;
    double hot_copy = 0;
    double count = 0;
    do {
      step += seconds_of([&] {
        for (int i = 0; i < kTurns; i += each_) {
          for (int k = 0; k < each_; ++k)
            stream_.step();
          if (const auto insertion = stream_.take())
            table_.insert(*insertion);
        }
      });
      copy += seconds_of([&] {
        for (std::size_t i = 0; i < kTurns; ++i) {
          std::memcpy(&ring_[at_], stream_.frame(i), hot_.size());
          at_ = at_ + 2 * hot_.size() > ring_.size() ? 0 : at_ + hot_.size();
        }
      });
      hot_copy += seconds_of([&] {
        for (std::size_t i = 0; i < kTurns; ++i) {
          std::memcpy(hot_.data(), stream_.frame(i), hot_.size());
          asm volatile("" : : "r"(hot_.data()) : "memory"); // every copy is made
        }
      });
      count += kTurns;
    } while (step + copy + hot_copy < seconds);
    costs.step.push_back(1e6 * step / count);
    costs.copy.push_back(1e6 * copy / count);
    costs.hot_copy.push_back(1e6 * hot_copy / count);
    costs.ratio.push_back(step / copy);
  }

private:
  replay::Table table_;
  Stream stream_;
  int each_;
  std::vector<std::byte> ring_; // as much as the table has of frames
  std::vector<std::byte> hot_;
  std::size_t at_ = 0;
};

void measure(const BenchOptions& options, const Report& report, const Kind& kind, int each) {
  WriterCost cost(kind, each);
  Costs costs;
  Costs unmeasured;
  cost.measure(0, unmeasured);
  for (int i = 0; i < std::max(options.repetitions, 1); ++i)
    cost.measure(options.seconds, costs);
  const auto give = [&](const std::string& metric, const std::string& unit,
                        const std::vector<double>& values) {
    Figure figure = median_of(values);
    figure.bench = "replay_writer";
    figure.metric = kind.name + " " + metric;
    figure.unit = unit;
    figure.config = {{"taken", "every " + std::to_string(each) + " steps"},
                     {"items", std::to_string(kind.items)}};
    report(figure);
  };
  give("step: frame copied into place, append, take, insert", "us/step", costs.step);
  give("memcpy of one frame into a ring as large as the table", "us/frame", costs.copy);
  give("memcpy of one frame to the same place", "us/frame", costs.hot_copy);
  give("step over memcpy into the ring", "times", costs.ratio);
}

} // namespace

/// What writing costs per environment step, the frame's copy included, in a full table; beside
/// memcpy of the same frames.
void bench_replay_writer(const BenchOptions& options, const Report& report) {
  for (const Kind& kind : kinds())
    for (const int each : {1, 64})
      measure(options, report, kind, each);
}

} // namespace troupe::experiments
