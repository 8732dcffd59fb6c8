#include <algorithm>
#include <chrono>
#include <vector>

#include "experiments/bench/bench.hpp"

namespace troupe::experiments {

Figure median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  Figure figure;
  figure.value =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  figure.minimum = values.front();
  figure.maximum = values.back();
  return figure;
}

Figure measure_rate(const BenchOptions& options, const std::string& bench,
                    const std::string& metric, const std::string& unit,
                    const std::function<double()>& chunk) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> rates;
  chunk(); // fills caches and lazily allocated buffers
  for (int i = 0; i < std::max(options.repetitions, 1); ++i) {
    const auto begin = Clock::now();
    double work = 0;
    double seconds = 0;
    do {
      work += chunk();
      seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    } while (seconds < options.seconds);
    rates.push_back(work / seconds);
  }
  Figure figure = median_of(std::move(rates));
  figure.bench = bench;
  figure.metric = metric;
  figure.unit = unit;
  return figure;
}

} // namespace troupe::experiments
