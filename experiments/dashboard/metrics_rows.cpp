#include "experiments/dashboard/metrics_rows.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::experiments::dashboard {

void Cell::add(double value) {
  if (!std::isfinite(value)) {
    return;
  }
  minimum = std::min(minimum, static_cast<float>(value));
  maximum = std::max(maximum, static_cast<float>(value));
  sum += value;
  ++count;
}

void Cell::add(const Cell& other) {
  minimum = std::min(minimum, other.minimum);
  maximum = std::max(maximum, other.maximum);
  sum += other.sum;
  count += other.count;
}

MetricsRows::MetricsRows(std::size_t columns, std::size_t most_buckets)
    : columns_(columns), most_(std::max<std::size_t>(2, most_buckets)) {}

void MetricsRows::merge_neighbours() {
  const std::size_t merged = (positions_.size() + 1) / 2;
  for (std::size_t to = 0; to < merged; ++to) {
    const std::size_t from = 2 * to;
    const std::size_t last = std::min(from + 1, positions_.size() - 1);
    for (std::size_t column = 0; column < columns_; ++column) {
      Cell both = cells_[from * columns_ + column];
      if (last > from) {
        both.add(cells_[last * columns_ + column]);
      }
      cells_[to * columns_ + column] = both;
    }
    positions_[to] = positions_[last];
  }
  positions_.resize(merged);
  cells_.resize(merged * columns_);
  rows_per_bucket_ *= 2;
}

void MetricsRows::add(double position, const std::vector<double>& values) {
  while (!positions_.empty() && positions_.back() > position) {
    positions_.pop_back();
    cells_.resize(positions_.size() * columns_);
    rows_in_last_ = rows_per_bucket_;
  }
  if (positions_.empty() || rows_in_last_ >= rows_per_bucket_) {
    if (positions_.size() == most_) {
      merge_neighbours(); // an even number of full ones
    }
    positions_.push_back(position);
    cells_.resize(positions_.size() * columns_);
    rows_in_last_ = 0;
  }
  positions_.back() = position;
  ++rows_in_last_;
  Cell* const last = &cells_[(positions_.size() - 1) * columns_];
  for (std::size_t column = 0; column < std::min(columns_, values.size()); ++column) {
    last[column].add(values[column]);
  }
}

std::vector<SeriesPoint> MetricsRows::series(std::size_t x, std::size_t y, std::size_t most) const {
  const std::size_t at_once =
      (positions_.size() + std::max<std::size_t>(1, most) - 1) / std::max<std::size_t>(1, most);
  std::vector<SeriesPoint> points;
  for (std::size_t begin = 0; begin < positions_.size(); begin += at_once) {
    Cell along, value;
    for (std::size_t i = begin; i < std::min(begin + at_once, positions_.size()); ++i) {
      along.add(cells_[i * columns_ + x]);
      value.add(cells_[i * columns_ + y]);
    }
    if (along.count > 0 && value.count > 0) {
      points.push_back({static_cast<float>(along.mean()), static_cast<float>(value.mean()),
                        value.minimum, value.maximum});
    }
  }
  return points;
}

} // namespace troupe::experiments::dashboard
