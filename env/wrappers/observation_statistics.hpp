#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "env/spec.hpp"

namespace troupe::env {

/// Running mean and variance of every element of the floating-point observation arrays, updated by
/// Welford's recurrence, which avoids cancellation.
struct ObservationStatistics {
  struct Array {
    std::string name;
    std::vector<double> mean;
    std::vector<double> squares; // sum of squared distances from the mean
    bool operator==(const Array&) const = default;
  };
  std::int64_t count = 0; // observations seen
  std::vector<Array> arrays;

  /// The variance of an element; 1 until there are two observations.
  double variance(std::size_t array, std::size_t element) const {
    return count < 2 ? 1 : arrays[array].squares[element] / static_cast<double>(count);
  }
  /// The divisor that Normalize uses.
  double deviation(std::size_t array, std::size_t element) const {
    return std::sqrt(variance(array, element) + 1e-8);
  }
  bool operator==(const ObservationStatistics&) const = default;
};

/// Statistics without observations, with one entry per floating-point array of the spec.
ObservationStatistics empty_statistics(const EnvironmentSpec& spec);

/// Statistics as a JSON file that keeps every number exactly. write_statistics() writes it
/// completely or not at all. read_statistics() checks format, sizes and signs, and throws
/// std::runtime_error naming the file; it refuses files of more than 64 MiB.
void write_statistics(const std::filesystem::path& path, const ObservationStatistics& statistics);
ObservationStatistics read_statistics(const std::filesystem::path& path);

} // namespace troupe::env
