#include <algorithm>
#include <bit>
#include <cstring>

#include "replay/batch/gather.hpp"
#include "replay/batch/gather_columns.hpp"
#include "replay/service/wire_format.hpp"
#include "replay/table/selector.hpp"
#include "replay/table/table_config_wire.hpp"

namespace troupe::replay {

namespace {

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(SampleRecord) == 40);

using env::wire::Frame;
using env::wire::Message;

/// The shape of received items, and the window that it is known to fit, because many items share
/// it.
struct ExaminedShape {
  ShapePtr shape;
  std::uint32_t rows = 0; // 0: not examined yet
  std::uint32_t history = 0;
};

/// Writes an item to row `row` of the batch. `from` are the rows that it shows of each column.
void put_received(const TransitionSpec& spec, const RowLayout& layout, const Item& item,
                  std::span<const std::byte* const> from, const BatchView& batch, std::size_t row) {
  const auto shown = [&](std::uint32_t k, std::size_t column) {
    return from[column] + k * layout.columns[column].bytes;
  };
  const std::uint32_t history = item.history;
  const auto put_as = [&](int lane, const auto& at) {
    put_transition(spec, layout, history, item.rows, lane, batch, row, at);
  };
  if (spec.is_sequence()) {
    put_sequence(spec, history, batch, row, shown);
  } else if (!item.shape) {
    put_as(-1, shown);
  } else if (spec.has_hindsight()) {
    const int lane = *hindsight_lane(spec, item.shape.get());
    put_as(lane, [&](std::uint32_t k, std::size_t column) {
      return shown(column <= kAction || lane < 0 ? k : 0U, column);
    });
  } else { // as transition_shape()
    const std::uint32_t hidden = item.steps() - static_cast<std::uint32_t>(spec.stack); // frames
    const std::size_t action = layout.place(kAction);
    const std::size_t running_return = layout.place(kRunningReturn);
    put_as(-1, [&](std::uint32_t k, std::size_t column) {
      if (column == kFrame)
        return shown(k <= history ? k : k - hidden, column);
      if (column < action)
        return shown(k <= history ? 0U : 1U, column);
      const bool one = column == action || column == running_return;
      return shown(one ? 0U : k - history - 1, column);
    });
  }
}

} // namespace

std::size_t part_size(const RowLayout& layout, std::span<const Item> items,
                      std::size_t part_bytes) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (const Item& item : items) {
    for (std::size_t column = 0; column < layout.columns.size(); ++column)
      bytes += shown_bytes(layout, column, item);
    if (count > 0 && bytes > part_bytes)
      break;
    ++count;
  }
  return count;
}

std::string too_large(const RowLayout& layout, const Insertion& insertion, std::size_t most) {
  const auto worded = [most](const std::string& what, std::size_t bytes) {
    return what + " has " + std::to_string(bytes) + " bytes, max_frame_bytes is "
           + std::to_string(most) + ": make it shorter, or raise the limit of server and clients"
           + " (and max_chunk_bytes)";
  };
  for (const ChunkRows& rows : insertion.rows)
    if (const std::size_t bytes = rows.chunk->capacity() * layout.row_bytes; bytes > most)
      return worded("a chunk of " + std::to_string(rows.chunk->capacity()) + " rows", bytes);
  for (const Item& item : insertion.items)
    for (std::size_t column = 0; column < layout.columns.size(); ++column) {
      if (item.rows * layout.row_bytes <= most)
        break; // the item shows at most this
      if (const std::size_t bytes = shown_bytes(layout, column, item); bytes > most)
        return worded("an item's column " + layout.signature.columns[column].name, bytes);
    }
  return "";
}

Message encode_sample(const RowLayout& layout, std::uint64_t signature, std::uint64_t request,
                      std::int64_t first, std::span<const Item> items, const FrameMaker& frame) {
  wire::Envelope head = envelope(signature);
  wire::SamplePart& part = *head.mutable_sample_part();
  part.set_request(request);
  part.set_first(first);
  part.set_count(static_cast<std::int64_t>(items.size()));
  part.set_table_items(items.empty() ? 0 : items[0].table_items);
  Message message;
  ShapePlaces shapes;
  Frame records = frame(items.size() * sizeof(SampleRecord));
  std::byte* record_at = records.bytes().data();
  for (const Item& item : items) {
    const SampleRecord record{item.key,          item.priority,
                              item.probability,  item.rows,
                              item.history,      shapes.of(item, *part.mutable_shapes()),
                              item.times_sampled};
    std::memcpy(record_at, &record, sizeof record);
    record_at += sizeof record;
  }
  // `out` points into the frames, and small ones hold their bytes inline: they must not move.
  message.frames.reserve(1 + layout.columns.size());
  message.frames.push_back(std::move(records));
  std::vector<std::byte*> out;
  for (std::size_t column = 0; column < layout.columns.size(); ++column) {
    std::size_t bytes = 0;
    for (const Item& item : items)
      bytes += shown_bytes(layout, column, item);
    message.frames.push_back(frame(bytes));
    out.push_back(message.frames.back().bytes().data());
  }
  gather_columns(layout, items, out);
  message.header = head.SerializeAsString();
  return message;
}

bool decode_sample(const TransitionSpec& spec, const RowLayout& layout,
                   const wire::SamplePart& header, std::span<const Frame> frames,
                   const BatchView& batch, std::int64_t first_row) {
  const std::size_t columns = layout.columns.size();
  const auto count = static_cast<std::size_t>(header.count());
  if (header.count() < 1 || frames.size() != 1 + columns
      || frames[0].size() / sizeof(SampleRecord) != count
      || frames[0].size() % sizeof(SampleRecord) != 0)
    return false;
  std::vector<ExaminedShape> shapes(1); // the first one means all rows
  for (const wire::Shape& shape : header.shapes())
    shapes.push_back({shape_of(shape)});
  std::vector<std::span<const std::byte>> left; // of each column
  for (const Frame& column : frames.subspan(1))
    left.push_back(column.bytes());
  std::vector<const std::byte*> from(columns);
  Item item;
  item.table_items = header.table_items();
  for (std::size_t i = 0; i < count; ++i) {
    SampleRecord record; // a copy, because the sender may share this memory
    std::memcpy(&record, frames[0].bytes().data() + i * sizeof record, sizeof record);
    if (!valid_priority(record.priority) || !(record.probability >= 0 && record.probability <= 1)
        || record.shape >= shapes.size() || record.rows == 0)
      return false;
    ExaminedShape& shape = shapes[record.shape];
    item.rows = record.rows;
    item.history = record.history;
    item.priority = record.priority;
    item.probability = record.probability;
    item.times_sampled = record.times_sampled;
    if (item.shape != shape.shape)
      item.shape = shape.shape;
    if ((item.rows != shape.rows || item.history != shape.history) && !is_transition(spec, item))
      return false;
    shape.rows = item.rows;
    shape.history = item.history;
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t bytes = shown_bytes(layout, column, item);
      if (left[column].size() < bytes)
        return false;
      from[column] = left[column].data();
      left[column] = left[column].subspan(bytes);
    }
    const std::size_t row = static_cast<std::size_t>(first_row) + i;
    put_received(spec, layout, item, from, batch, row);
    batch.key[row] = record.key;
    put_choice(batch, row, item);
  }
  return std::all_of(left.begin(), left.end(), [](auto column) { return column.empty(); });
}

} // namespace troupe::replay
