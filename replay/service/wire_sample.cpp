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

/// The received frames of a transition, by position in its window.
struct TransitionRows {
  // `own` frames of the observation, then the frames of the next one.
  const std::byte* frames = nullptr;
  std::uint32_t own = 0;  // number of frames of the observation
  std::uint32_t skip = 0; // rows in between that neither observation shows

  const std::byte* frame(std::uint32_t row, std::size_t bytes) const {
    return frames + (row < own ? row : row - skip) * bytes;
  }
};

/// Consumes and returns the next `bytes` of a column's frame; null if there are fewer.
const std::byte* take(std::span<const std::byte>& from, std::size_t bytes) {
  if (from.size() < bytes)
    return nullptr;
  const std::byte* taken = from.data();
  from = from.subspan(bytes);
  return taken;
}

/// Reads all columns of a part in parallel, one item after the other.
class TransitionReader {
public:
  struct Shape {
    ShapePtr shape;
    std::uint32_t history = 0;
    std::uint32_t steps = 0; // number of steps that it is known to fit; 0: not examined yet
  };

  TransitionReader(const TransitionSpec& spec, std::span<const Frame> columns) : spec_(spec) {
    for (const Frame& column : columns)
      columns_.push_back(column.bytes());
    if (spec.is_sequence() || spec.has_hindsight())
      for (const env::ArraySpec& column : Signature(spec).columns)
        bytes_.push_back(column.bytes());
  }

  /// Reads the next item into row `row` of the batch. Returns false if the record or the columns
  /// are not of an item of this spec.
  bool read(const SampleRecord& record, Shape* shape, const BatchView& batch, std::size_t row) {
    if (spec_.is_sequence())
      return shape == nullptr && read_sequence(record, batch, row);
    return spec_.has_hindsight() ? read_hindsight(record, shape, batch, row)
                                 : read_transition(record, shape, batch, row);
  }

  bool at_end() const {
    return std::all_of(columns_.begin(), columns_.end(),
                       [](auto column) { return column.empty(); });
  }

private:
  bool read_sequence(const SampleRecord& record, const BatchView& batch, std::size_t row) {
    if (record.history >= static_cast<std::uint32_t>(spec_.stack)
        || std::int64_t{record.rows} != record.history + 1 + spec_.sequence_steps)
      return false;
    std::vector<const std::byte*> from;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      from.push_back(take(columns_[column], record.rows * bytes_[column]));
      if (from.back() == nullptr)
        return false;
    }
    put_sequence(spec_, record.history, batch, row, [&](std::uint32_t k, std::size_t column) {
      return from[column] + k * bytes_[column];
    });
    return true;
  }

  bool read_hindsight(const SampleRecord& record, const Shape* shape, const BatchView& batch,
                      std::size_t row) {
    const auto lane = hindsight_lane(spec_, shape != nullptr ? shape->shape.get() : nullptr);
    if (!lane || record.rows != 2 || record.history != 0)
      return false;
    const HindsightColumns own = hindsight_columns(*lane);
    const std::uint32_t before = *lane < 0 ? 1 : 0; // rows of goal, reward and discount to skip
    const auto last = [&](std::size_t column, std::uint32_t skipped) {
      const std::byte* taken = take(columns_[column], (skipped + 1) * bytes_[column]);
      return taken == nullptr ? nullptr : taken + skipped * bytes_[column];
    };
    const std::byte* frames = take(columns_[kFrame], 2 * bytes_[kFrame]);
    const std::byte* action = last(kAction, 1);
    const std::byte* goal = last(own.goal, before);
    const std::byte* reward = last(own.reward, before);
    const std::byte* discount = last(own.discount, before);
    if (frames == nullptr || action == nullptr || goal == nullptr || reward == nullptr
        || discount == nullptr)
      return false;
    const std::size_t place = row * bytes_[kFrame];
    std::memcpy(batch.observation.data() + place, frames, bytes_[kFrame]);
    std::memcpy(batch.next_observation.data() + place, frames + bytes_[kFrame], bytes_[kFrame]);
    put_goal(spec_, batch, row, goal);
    std::memcpy(batch.action.data() + row * static_cast<std::size_t>(spec_.action_size), action,
                bytes_[kAction]);
    const NStep sums = n_step(spec_, 1, reward, discount);
    batch.reward[row] = sums.reward;
    batch.discount[row] = sums.discount;
    return true;
  }

  bool read_transition(const SampleRecord& record, Shape* shape, const BatchView& batch,
                       std::size_t row) {
    const auto stack = static_cast<std::uint32_t>(spec_.stack);
    const std::uint32_t steps = record.rows - record.history - 1;
    if (record.rows < 2 || record.rows > stack + static_cast<std::uint32_t>(spec_.n_step)
        || record.history >= stack || record.history + 1 >= record.rows
        || steps > static_cast<std::uint32_t>(spec_.n_step))
      return false;
    TransitionRows rows{nullptr, record.history + 1, 0};
    std::uint32_t after =
        record.history + 1; // rows of action, reward and discount before the steps
    if (shape != nullptr) {
      if (!fits(*shape, record.history, steps))
        return false;
      rows.skip = record.rows - stack - rows.own;
      after = 0;
    }
    const std::size_t frame_bytes = spec_.frame.bytes();
    const std::size_t action_bytes = static_cast<std::size_t>(spec_.action_size) * sizeof(float);
    const std::size_t actions = shape != nullptr ? 1 : record.rows;
    const std::size_t vectors = spec_.vectors.size();
    rows.frames = take(columns_[kFrame], (record.rows - rows.skip) * frame_bytes);
    for (std::size_t i = 0; i < vectors; ++i) {
      const std::size_t bytes = spec_.vectors[i].bytes();
      const std::byte* from =
          take(columns_[kVectors + i], (shape != nullptr ? 2 : record.rows) * bytes);
      if (from == nullptr)
        return false;
      std::memcpy(batch.vectors[i].data() + row * bytes,
                  from + (shape != nullptr ? 0 : record.history * bytes), bytes);
      std::memcpy(batch.next_vectors[i].data() + row * bytes,
                  from + (shape != nullptr ? 1 : record.rows - 1) * bytes, bytes);
    }
    const std::byte* action = take(columns_[kAction + vectors], actions * action_bytes);
    const std::byte* reward = take(columns_[kReward + vectors], (after + steps) * sizeof(float));
    const std::byte* discount =
        take(columns_[kDiscount + vectors], (after + steps) * sizeof(float));
    if (rows.frames == nullptr || action == nullptr || reward == nullptr || discount == nullptr)
      return false;
    const auto expand = [&](std::uint32_t newest, std::byte* out) {
      for (std::uint32_t k = 0; k < stack; ++k, out += frame_bytes)
        std::memcpy(out,
                    rows.frame(newest + k + 1 > stack ? newest + k + 1 - stack : 0, frame_bytes),
                    frame_bytes);
    };
    expand(record.history, batch.observation.data() + row * stack * frame_bytes);
    expand(record.rows - 1, batch.next_observation.data() + row * stack * frame_bytes);
    std::memcpy(batch.action.data() + row * static_cast<std::size_t>(spec_.action_size),
                action + (shape != nullptr ? 0 : after * action_bytes), action_bytes);
    const NStep sums =
        n_step(spec_, steps, reward + after * sizeof(float), discount + after * sizeof(float));
    batch.reward[row] = sums.reward;
    batch.discount[row] = sums.discount;
    return true;
  }

  /// True if this is the shape of a transition of `steps` steps. Each shape is examined only once,
  /// because many items share it.
  bool fits(Shape& shape, std::uint32_t history, std::uint32_t steps) const {
    const auto stack = static_cast<std::uint32_t>(spec_.stack);
    if (shape.steps == 0 && steps > stack
        && *shape.shape == transition_shape(history, steps, stack, spec_.vectors.size())) {
      shape.history = history;
      shape.steps = steps;
    }
    return shape.steps == steps && shape.history == history;
  }

  const TransitionSpec& spec_;
  std::vector<std::span<const std::byte>> columns_;
  std::vector<std::size_t> bytes_; // row bytes of each column, only for sequences and hindsight
};

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

bool decode_sample(const TransitionSpec& spec, const wire::SamplePart& header,
                   std::span<const Frame> frames, const BatchView& batch, std::int64_t first_row) {
  const std::size_t columns = Signature(spec).columns.size();
  const auto count = static_cast<std::size_t>(header.count());
  if (header.count() < 1 || frames.size() != 1 + columns
      || frames[0].size() / sizeof(SampleRecord) != count
      || frames[0].size() % sizeof(SampleRecord) != 0)
    return false;
  std::vector<TransitionReader::Shape> shapes(1); // the first one means all rows
  for (const wire::Shape& shape : header.shapes())
    shapes.push_back({shape_of(shape)});
  TransitionReader reader(spec, frames.subspan(1));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t row = static_cast<std::size_t>(first_row) + i;
    SampleRecord record;
    std::memcpy(&record, frames[0].bytes().data() + i * sizeof record, sizeof record);
    if (!valid_priority(record.priority) || !(record.probability >= 0 && record.probability <= 1)
        || record.shape >= shapes.size()
        || !reader.read(record, record.shape == 0 ? nullptr : &shapes[record.shape], batch, row))
      return false;
    batch.key[row] = record.key;
    Item choice;
    choice.priority = record.priority;
    choice.probability = record.probability;
    choice.times_sampled = record.times_sampled;
    choice.table_items = header.table_items();
    put_choice(batch, row, choice);
  }
  return reader.at_end();
}

} // namespace troupe::replay
