#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "env/spec.hpp"

namespace troupe::env {

/// Running mean and variance of every element of the floating-point observation arrays, by
/// Welford's recurrence: exact sums of squares, no cancellation.
struct ObservationStatistics {
  struct Array {
    std::string name;
    std::vector<double> mean;
    std::vector<double> squares; // sum of squared distances from the mean
    bool operator==(const Array&) const = default;
  };
  std::int64_t count = 0; // observations seen
  std::vector<Array> arrays;

  /// Variance of an element; 1 before there are two observations.
  double variance(std::size_t array, std::size_t element) const {
    return count < 2 ? 1 : arrays[array].squares[element] / static_cast<double>(count);
  }
  /// What Normalize divides by.
  double deviation(std::size_t array, std::size_t element) const {
    return std::sqrt(variance(array, element) + 1e-8);
  }
  bool operator==(const ObservationStatistics&) const = default;
};

/// Nothing seen yet, one entry per floating-point array of the spec.
ObservationStatistics empty_statistics(const EnvironmentSpec& spec);

/// As JSON, whole or not at all, every number exact. Reading checks format, sizes and signs and
/// throws std::runtime_error naming the file; a file of more than 64 MiB is refused.
void write_statistics(const std::filesystem::path& path, const ObservationStatistics& statistics);
ObservationStatistics read_statistics(const std::filesystem::path& path);

} // namespace troupe::env
