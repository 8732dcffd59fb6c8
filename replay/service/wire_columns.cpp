#include <cstring>
#include <utility>

#include "replay/batch/column_batch.hpp"
#include "replay/service/wire_format.hpp"
#include "replay/table/selector.hpp"

namespace troupe::replay {

using env::wire::Frame;

bool decode_columns(const RowLayout& layout, const wire::SamplePart& header,
                    std::vector<Frame> frames, ColumnPart& part) {
  const auto count = static_cast<std::size_t>(header.count());
  if (header.count() < 1 || frames.size() != 1 + layout.columns.size()
      || frames[0].size() / sizeof(SampleRecord) != count
      || frames[0].size() % sizeof(SampleRecord) != 0)
    return false;
  const std::vector<ReceivedShape> shapes = decode_shapes(layout, header.shapes());
  part.columns.resize(layout.columns.size());
  for (std::size_t column = 0; column < part.columns.size(); ++column) {
    part.columns[column].row_bytes = layout.columns[column].bytes;
    part.columns[column].first.reserve(count + 1);
    part.columns[column].first.push_back(0);
  }
  part.items.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    SampleRecord record; // a copy, because the sender may share this memory
    std::memcpy(&record, frames[0].bytes().data() + i * sizeof record, sizeof record);
    if (!valid_priority(record.priority) || !(record.probability >= 0 && record.probability <= 1)
        || record.shape >= shapes.size() || record.rows < shapes[record.shape].window
        || record.rows > kMostWindow || record.history >= record.rows)
      return false;
    for (std::size_t column = 0; column < part.columns.size(); ++column) {
      std::vector<std::uint64_t>& first = part.columns[column].first;
      first.push_back(first.back()
                      + rows_shown(shapes[record.shape].shape.get(), column, record.rows));
    }
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
