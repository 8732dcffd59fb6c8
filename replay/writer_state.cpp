// The state of a writer as bytes: a head, the shapes and items not yet taken, and every row that
// they or coming items may need, oldest first.
#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "replay/selector.hpp"
#include "replay/writer.hpp"
#include "replay/writer_state.hpp"

namespace troupe::replay {

namespace {

constexpr std::uint64_t kMagic = 0x3230545257505254U; // "TRPWRT02"
constexpr std::uint32_t kNoShape = 0xffffffffU;
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 24;
constexpr std::int64_t kLastRow = std::int64_t{1} << 60;

struct Head {
  std::uint64_t magic = kMagic;
  std::uint64_t signature = 0;
  std::uint64_t writer_id = 0;
  std::uint64_t capacity = 0;
  std::int64_t end = 0;
  std::uint64_t next_item = 0;
  std::uint64_t sequence = 0;
  std::uint64_t rows = 0;
  std::uint64_t items = 0;
  std::uint64_t shapes = 0;
};

struct SavedItem {
  std::uint64_t key = 0;
  std::uint64_t first_row = 0; // counted from the first saved row
  std::uint32_t rows = 0;
  std::uint32_t history = 0;
  std::uint32_t shape = kNoShape;
  std::uint32_t zero = 0;
  double priority = 1;
};

static_assert(std::has_unique_object_representations_v<Head>);
static_assert(sizeof(SavedItem) == 40); // no padding

void put_shape(std::vector<std::byte>& out, const ItemShape& shape) {
  for (const std::vector<Slice>& slices : shape.columns) {
    put(out, static_cast<std::uint32_t>(slices.size()));
    for (const Slice& slice : slices)
      put(out, slice);
  }
}

ShapePtr take_shape(std::span<const std::byte>& in, std::size_t columns) {
  auto shape = std::make_shared<ItemShape>();
  for (std::size_t column = 0; column < columns; ++column) {
    const auto count = take_value<std::uint32_t>(in);
    if (count > in.size() / sizeof(Slice))
      refuse("is truncated");
    std::vector<Slice>& slices = shape->columns.emplace_back();
    for (std::uint32_t i = 0; i < count; ++i)
      slices.push_back(take_value<Slice>(in));
  }
  return shape;
}

} // namespace

/// Reaches into a Writer to write it down and to build it again.
struct WriterState {
  static std::int64_t first_row(const Writer& writer, const Item& item) {
    return static_cast<std::int64_t>(item.chunks[0]->id()) * writer.capacity_ + item.begin;
  }

  static void save(const Writer& writer, std::vector<std::byte>& out) {
    std::map<std::uint64_t, const Chunk*> chunks;
    for (const auto& chunk : writer.recent_)
      chunks[chunk->id()] = chunk.get();
    std::int64_t begin = std::max(writer.begin_, writer.end_ - writer.reach_);
    std::vector<const ItemShape*> shapes;
    for (const Item& item : writer.items_) {
      begin = std::min(begin, first_row(writer, item));
      for (std::size_t i = 0; i < item.chunks.size(); ++i)
        chunks[item.chunks[i]->id()] = item.chunks[i].get();
      if (item.shape && std::find(shapes.begin(), shapes.end(), item.shape.get()) == shapes.end())
        shapes.push_back(item.shape.get());
    }
    put(out, Head{.signature = fingerprint(writer.layout_->signature),
                  .writer_id = writer.writer_id_,
                  .capacity = static_cast<std::uint64_t>(writer.capacity_),
                  .end = writer.end_,
                  .next_item = writer.next_item_,
                  .sequence = writer.sequence_,
                  .rows = static_cast<std::uint64_t>(writer.end_ - begin),
                  .items = writer.items_.size(),
                  .shapes = shapes.size()});
    for (const ItemShape* shape : shapes)
      put_shape(out, *shape);
    for (const Item& item : writer.items_) {
      const auto shape = std::find(shapes.begin(), shapes.end(), item.shape.get());
      put(out, SavedItem{.key = item.key,
                         .first_row = static_cast<std::uint64_t>(first_row(writer, item) - begin),
                         .rows = item.rows,
                         .history = item.history,
                         .shape = item.shape ? static_cast<std::uint32_t>(shape - shapes.begin())
                                             : kNoShape,
                         .priority = item.priority});
    }
    for (std::int64_t row = begin; row < writer.end_; ++row) {
      const auto at = static_cast<std::size_t>(row % writer.capacity_);
      const Chunk& chunk = *chunks.at(static_cast<std::uint64_t>(row / writer.capacity_));
      out.push_back(static_cast<std::byte>(chunk.flags(at)));
      out.insert(out.end(), chunk.row(at), chunk.row(at) + writer.layout_->row_bytes);
    }
  }

  static Head take_head(std::span<const std::byte>& in, const Writer& writer) {
    const auto head = take_value<Head>(in);
    if (head.magic != kMagic)
      refuse("is foreign or of an earlier program: it does not begin as ours does");
    if (head.signature != fingerprint(writer.layout_->signature))
      refuse("was saved for other steps than these: " + describe(writer.layout_->signature));
    if (head.capacity != static_cast<std::uint64_t>(writer.capacity_))
      refuse("was saved with chunks of " + std::to_string(head.capacity) + " rows, not "
             + std::to_string(writer.capacity_) + "; give both the same chunk_rows");
    if (head.rows > kMostRows || head.end < 0 || head.end > kLastRow)
      refuse("is damaged: its counts make no sense");
    if (head.shapes > in.size() || head.items > in.size() / sizeof(SavedItem)
        || head.rows > in.size() / (writer.layout_->row_bytes + 1))
      refuse("is truncated");
    return head;
  }

  static std::span<const std::byte> load(Writer& writer, std::span<const std::byte> in) {
    const Head head = take_head(in, writer);
    const RowLayout& layout = *writer.layout_;
    std::vector<ShapePtr> shapes;
    for (std::uint64_t i = 0; i < head.shapes; ++i)
      shapes.push_back(take_shape(in, layout.columns.size()));
    std::vector<SavedItem> saved;
    for (std::uint64_t i = 0; i < head.items; ++i) {
      const auto item = take_value<SavedItem>(in);
      if (item.rows < 1 || item.history >= item.rows || item.first_row >= head.rows
          || item.rows > head.rows - item.first_row || !valid_priority(item.priority)
          || (item.shape != kNoShape
              && (item.shape >= shapes.size()
                  || !fits(*shapes[item.shape], layout.columns.size(), item.rows))))
        refuse("is damaged: an item lies outside its rows");
      saved.push_back(item);
    }
    if (in.size() / (layout.row_bytes + 1) < head.rows)
      refuse("is truncated");
    Writer fresh(layout.signature, head.writer_id,
                 {.chunk_rows = static_cast<int>(writer.capacity_),
                  .reach = std::max<std::int64_t>(1, static_cast<std::int64_t>(head.rows))});
    // Chunks of its own: rows are counted on from the next whole chunk.
    const std::int64_t begin =
        (head.end + writer.capacity_ - 1) / writer.capacity_ * writer.capacity_;
    fresh.begin_ = fresh.end_ = fresh.taken_ = fresh.named_ = begin;
    for (std::uint64_t i = 0; i < head.rows; ++i) {
      std::memcpy(fresh.next(0).data(), in.data() + 1, layout.row_bytes);
      fresh.append(static_cast<std::uint8_t>(in[0]));
      in = in.subspan(1 + layout.row_bytes);
    }
    for (const SavedItem& item : saved) {
      fresh.add_item(begin + static_cast<std::int64_t>(item.first_row), item.rows, item.history,
                     item.shape == kNoShape ? nullptr : shapes[item.shape], item.priority);
      fresh.items_.back().key = item.key;
    }
    fresh.reach_ = writer.reach_;
    fresh.next_item_ = head.next_item;
    fresh.sequence_ = head.sequence;
    writer = std::move(fresh);
    return in;
  }
};

void Writer::save_state(std::vector<std::byte>& out) const {
  WriterState::save(*this, out);
}

std::span<const std::byte> Writer::load_state(std::span<const std::byte> in) {
  return WriterState::load(*this, in);
}

void save_episode(std::vector<std::byte>& out, std::int64_t rows, const Writer& writer) {
  put(out, rows - 1);
  writer.save_state(out);
}

std::int64_t load_episode(std::span<const std::byte>& in, Writer& writer, std::int64_t needed) {
  std::span<const std::byte> rest = in;
  const auto rows = take_value<std::int64_t>(rest);
  Writer fresh = writer;
  rest = fresh.load_state(rest);
  if (rows < -1 || rows > kLastRow || std::min(rows + 1, needed) > fresh.kept_rows())
    refuse("is damaged: the open episode lacks rows");
  writer = std::move(fresh);
  in = rest;
  return rows + 1;
}

} // namespace troupe::replay
