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

/// What is known of a run's metrics.csv, which is read as it grows. One thread at a time.
class RunMetrics {
public:
  explicit RunMetrics(std::filesystem::path file);

  using Deadline = std::chrono::steady_clock::time_point;

  /// Reads what was appended, a part at a time, and stops after the first part that ends later than
  /// `deadline`. A file that became shorter is read again from its beginning.
  void read(Deadline deadline);

  /// Whether read() had nothing left.
  bool complete() const { return complete_; }
  std::uint64_t version() const { return version_; } // changes with the values
  std::uint64_t bytes_read() const { return at_; }
  std::uint64_t bytes() const { return size_; } // of the file when read() last looked
  const std::vector<std::string>& columns() const { return names_; }

  /// Empty if the file has no such columns. Evaluations have rows of their own; where one lacks
  /// `x`, the last report before it has it.
  std::vector<SeriesPoint> series(const std::string& x, const std::string& y,
                                  std::size_t most) const;

  /// The last value of a column in any row.
  std::optional<double> last(const std::string& column) const;
  bool finished() const { return finished_; } // its last row is the final evaluation

private:
  void reset();
  void take(const std::vector<std::string_view>& fields);
  std::optional<std::size_t> index_of(const std::string& column) const;

  std::filesystem::path file_;
  std::uint64_t at_ = 0, size_ = 0, version_ = 0;
  bool complete_ = false, finished_ = false;
  std::string rest_; // of a record that is not whole
  std::vector<std::string> names_;
  std::vector<double> last_, values_;
  std::optional<MetricsRows> reports_, evaluations_;
  std::size_t kind_ = 0, steps_ = 0, updates_ = 0; // columns
};

} // namespace troupe::experiments::dashboard
