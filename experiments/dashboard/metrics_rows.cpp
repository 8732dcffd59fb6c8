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
    : most_(std::max<std::size_t>(2, most_buckets)), columns_(columns) {}

void MetricsRows::merge_neighbours() {
  const std::size_t merged = (positions_.size() + 1) / 2;
  for (std::vector<Cell>& cells : columns_) {
    for (std::size_t to = 0; to < merged; ++to) {
      Cell both = cells[2 * to];
      if (2 * to + 1 < cells.size()) {
        both.add(cells[2 * to + 1]);
      }
      cells[to] = both;
    }
    cells.resize(merged);
  }
  for (std::size_t to = 0; to < merged; ++to) {
    positions_[to] = positions_[std::min(2 * to + 1, positions_.size() - 1)];
  }
  positions_.resize(merged);
  rows_per_bucket_ *= 2;
}

void MetricsRows::add(double position, const std::vector<double>& values) {
  while (!positions_.empty() && positions_.back() > position) {
    positions_.pop_back();
    rows_in_last_ = rows_per_bucket_;
  }
  if (positions_.empty() || rows_in_last_ >= rows_per_bucket_) {
    if (positions_.size() == most_) {
      merge_neighbours(); // all buckets are full, and their number is even
    }
    positions_.push_back(position);
    rows_in_last_ = 0;
    for (std::vector<Cell>& cells : columns_) {
      cells.resize(positions_.size() - 1); // without the dropped buckets
      cells.emplace_back();
    }
  }
  positions_.back() = position;
  ++rows_in_last_;
  for (std::size_t column = 0; column < std::min(columns_.size(), values.size()); ++column) {
    columns_[column].back().add(values[column]);
  }
}

std::vector<SeriesPoint> MetricsRows::series(std::size_t x, std::size_t y, std::size_t most) const {
  const std::size_t at_once =
      (positions_.size() + std::max<std::size_t>(1, most) - 1) / std::max<std::size_t>(1, most);
  std::vector<SeriesPoint> points;
  points.reserve(std::min(most, positions_.size()));
  for (std::size_t begin = 0; begin < positions_.size(); begin += at_once) {
    Cell along, value;
    for (std::size_t i = begin; i < std::min(begin + at_once, positions_.size()); ++i) {
      along.add(columns_[x][i]);
      value.add(columns_[y][i]);
    }
    if (along.count > 0 && value.count > 0) {
      points.push_back({static_cast<float>(along.mean()), static_cast<float>(value.mean()),
                        value.minimum, value.maximum});
    }
  }
  return points;
}

} // namespace troupe::experiments::dashboard
