#include <algorithm>
#include <chrono>
#include <vector>

#include "experiments/bench/bench.hpp"

namespace troupe::experiments {

Figure measure_rate(const BenchOptions& options, const std::string& bench,
                    const std::string& metric, const std::string& unit,
                    const std::function<double()>& chunk) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> rates;
  chunk(); // caches, lazily made buffers
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
  std::sort(rates.begin(), rates.end());
  const std::size_t middle = rates.size() / 2;
  return {.bench = bench,
          .metric = metric,
          .value = rates.size() % 2 == 1 ? rates[middle] : (rates[middle - 1] + rates[middle]) / 2,
          .minimum = rates.front(),
          .maximum = rates.back(),
          .unit = unit,
          .config = {}};
}

} // namespace troupe::experiments
