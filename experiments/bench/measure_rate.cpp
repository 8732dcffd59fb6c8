#include <algorithm>
#include <chrono>
#include <vector>

#include "experiments/bench/bench.hpp"

namespace troupe::experiments {

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void report_values(const Report& report, const std::string& bench, const std::string& metric,
                   const std::string& unit, const std::vector<double>& values,
                   const FigureConfig& config) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  report({.bench = bench,
          .metric = metric,
          .value = median_of(values),
          .minimum = *least,
          .maximum = *most,
          .unit = unit,
          .config = config});
}

std::vector<double> measure_rates(const BenchOptions& options,
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
  return rates;
}

} // namespace troupe::experiments
