#include <algorithm>
#include <cstring>
#include <utility>

#include "replay/batch/column_batch.hpp"
#include "replay/service/wire_format.hpp"
#include "replay/table/selector.hpp"
#include "replay/table/table_config_wire.hpp"

namespace troupe::replay {

namespace {

using env::wire::Frame;

/// A shape that is examined only once, because many items share it.
struct Shown {
  std::uint32_t window = 1; // the smallest window that it fits
  ShapePtr shape;

  explicit Shown(ShapePtr from) : shape(std::move(from)) {
    for (const std::vector<Slice>& slices : shape->columns)
      for (const Slice& slice : slices)
        window = std::max(window, slice.first + slice.count);
  }
};

/// Counts the rows of each column that the items show.
class RowCounts {
public:
  RowCounts(const RowLayout& layout, const wire::SamplePart& header,
            std::vector<ColumnPart::Column>& columns)
      : columns_(columns) {
    columns_.resize(layout.columns.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      columns_[i].row_bytes = layout.columns[i].bytes;
      columns_[i].first.reserve(static_cast<std::size_t>(header.count()) + 1);
      columns_[i].first.push_back(0);
    }
    for (const wire::Shape& shape : header.shapes()) {
      ShapePtr made = shape_of(shape);
      shapes_fit_ = shapes_fit_ && fits(*made, columns_.size(), kMostWindow);
      if (shapes_fit_)
        shapes_.emplace_back(std::move(made));
    }
  }

  bool add(const SampleRecord& record) {
    if (!shapes_fit_ || record.rows < 1 || record.rows > kMostWindow
        || record.history >= record.rows || record.shape > shapes_.size())
      return false;
    const Shown* shown = record.shape == 0 ? nullptr : &shapes_[record.shape - 1];
    if (shown != nullptr && shown->window > record.rows)
      return false;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      std::vector<std::uint64_t>& first = columns_[i].first;
      first.push_back(
          first.back()
          + rows_shown(shown != nullptr ? shown->shape.get() : nullptr, i, record.rows));
    }
    return true;
  }

private:
  std::vector<ColumnPart::Column>& columns_;
  std::vector<Shown> shapes_;
  bool shapes_fit_ = true;
};

} // namespace

bool decode_columns(const RowLayout& layout, const wire::SamplePart& header,
                    std::vector<Frame> frames, ColumnPart& part) {
  const auto count = static_cast<std::size_t>(header.count());
  if (header.count() < 1 || frames.size() != 1 + layout.columns.size()
      || frames[0].size() / sizeof(SampleRecord) != count
      || frames[0].size() % sizeof(SampleRecord) != 0)
    return false;
  RowCounts rows(layout, header, part.columns);
  part.items.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    SampleRecord record; // a copy, because the sender may share this memory
    std::memcpy(&record, frames[0].bytes().data() + i * sizeof record, sizeof record);
    if (!valid_priority(record.priority) || !(record.probability >= 0 && record.probability <= 1)
        || !rows.add(record))
      return false;
    part.items.push_back({.key = record.key,
                          .priority = record.priority,
                          .probability = record.probability,
                          .rows = record.rows,
                          .history = record.history,
                          .times_sampled = record.times_sampled,
                          .table_items = header.table_items()});
  }
  part.memory = std::move(frames);
  for (std::size_t i = 0; i < part.columns.size(); ++i) {
    ColumnPart::Column& column = part.columns[i];
    column.bytes = std::as_const(part.memory[i + 1]).bytes();
    if (column.bytes.size() % column.row_bytes != 0
        || column.bytes.size() / column.row_bytes != column.first.back())
      return false;
  }
  return true;
}

} // namespace troupe::replay
