#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::experiments::dashboard {

/// Statistics of one column over consecutive rows. Missing values do not count.
struct Cell {
  float minimum = std::numeric_limits<float>::infinity();
  float maximum = -std::numeric_limits<float>::infinity();
  double sum = 0;
  std::uint32_t count = 0;

  void add(double value);
  void add(const Cell& other);
  double mean() const { return sum / count; } // requires count > 0
};

/// A point of a drawn series.
struct SeriesPoint {
  float x = 0, mean = 0, minimum = 0, maximum = 0;
};

/// Summarises any number of rows in bounded memory: at most `most_buckets` buckets, each for the
/// same number of consecutive rows. When all buckets are full, neighbours are merged. Use from one
/// thread.
class MetricsRows {
public:
  explicit MetricsRows(std::size_t columns, std::size_t most_buckets = 1024);

  /// Adds a row; NaN stands for a missing value. `position` decreases when a resumed run goes back
  /// to its checkpoint; the buckets whose last row is after it are then dropped.
  void add(double position, const std::vector<double>& values);

  /// At most `most` points of column `y` over column `x`. Omits buckets without values of both.
  std::vector<SeriesPoint> series(std::size_t x, std::size_t y, std::size_t most) const;

  std::size_t buckets() const { return positions_.size(); }

private:
  void merge_neighbours();
  std::size_t most_;
  std::size_t rows_per_bucket_ = 1;
  std::size_t rows_in_last_ = 0;
  std::vector<std::vector<Cell>> columns_; // [column][bucket]
  std::vector<double> positions_;          // position of each bucket's last row
};

} // namespace troupe::experiments::dashboard
