#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/dashboard/metrics_rows.hpp"

namespace troupe::experiments::dashboard {

/// Summary of a run's metrics.csv, which is read as it grows. Use from one thread at a time.
class RunMetrics {
public:
  static constexpr std::uint64_t kFirstVersion = 1; // 0 is the version of clients that have none

  /// version() begins at `version`.
  explicit RunMetrics(std::filesystem::path file, std::uint64_t version = kFirstVersion);

  using Deadline = std::chrono::steady_clock::time_point;

  /// Reads what was appended, in parts, and stops after the first part that ends later than
  /// `deadline`. If the file has become shorter, reads it again from the beginning.
  void read(Deadline deadline);

  /// Whether read() reached the end of the file.
  bool complete() const { return complete_; }
  std::uint64_t version() const { return version_; } // changes whenever the values change
  std::uint64_t bytes_read() const { return at_; }
  std::uint64_t bytes() const { return size_; } // size of the file at the last read()
  const std::vector<std::string>& columns() const { return names_; }

  /// The column `y` over `x`; empty if the file has no such columns. Evaluations have rows of their
  /// own; if such a row lacks `x`, the value of the last report before it is used.
  std::vector<SeriesPoint> series(const std::string& x, const std::string& y,
                                  std::size_t most) const;

  /// The last value of a column in any row.
  std::optional<double> last(const std::string& column) const;

private:
  void reset();
  void take(const std::vector<std::string_view>& fields);
  std::optional<std::size_t> index_of(const std::string& column) const;

  std::filesystem::path file_;
  std::uint64_t at_ = 0, size_ = 0, version_ = 0; // at_: end of the last complete record read
  bool complete_ = false;
  std::vector<std::string> names_;
  std::vector<double> last_, values_;
  std::optional<MetricsRows> reports_, evaluations_;
  std::size_t kind_ = 0, steps_ = 0, updates_ = 0; // indices of columns
};

} // namespace troupe::experiments::dashboard
