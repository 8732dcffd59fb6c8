#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::experiments::dashboard {

/// The values of one column in consecutive rows; missing ones do not count.
struct Cell {
  float minimum = std::numeric_limits<float>::infinity();
  float maximum = -std::numeric_limits<float>::infinity();
  double sum = 0;
  std::uint32_t count = 0;

  void add(double value);
  void add(const Cell& other);
  double mean() const { return sum / count; } // count > 0
};

/// A point of a drawn series.
struct SeriesPoint {
  float x = 0, mean = 0, minimum = 0, maximum = 0;
};

/// Any number of rows of numbers in bounded memory: at most `most_buckets` buckets of equally many
/// consecutive rows. When all are full, neighbours merge. One thread.
class MetricsRows {
public:
  explicit MetricsRows(std::size_t columns, std::size_t most_buckets = 1024);

  /// NaN for a missing value. `position` is what a resumed run counts back: rows at or after it are
  /// dropped, bucket by bucket.
  void add(double position, const std::vector<double>& values);

  /// At most `most` points of one column along another; buckets without both are left out.
  std::vector<SeriesPoint> series(std::size_t x, std::size_t y, std::size_t most) const;

  std::size_t buckets() const { return positions_.size(); }

private:
  void merge_neighbours();
  std::size_t most_;
  std::size_t rows_per_bucket_ = 1;
  std::size_t rows_in_last_ = 0;
  std::vector<std::vector<Cell>> columns_; // [column][bucket]
  std::vector<double> positions_;          // of the last row of each bucket
};

} // namespace troupe::experiments::dashboard
