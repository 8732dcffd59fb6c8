// The saved state of a writer consists of a header, the pending shapes and items, all rows that
// these or later items may need, oldest first, and the state of the policy. The header has a
// checksum of everything after itself.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>

#include "replay/storage/segment_file.hpp"
#include "replay/table/selector.hpp"
#include "replay/writers/writer.hpp"
#include "replay/writers/writer_state.hpp"

namespace troupe::replay {

namespace {

constexpr std::uint64_t kMagic = 0x3430545257505254U; // "TRPWRT04"
constexpr std::uint32_t kNoShape = 0xffffffffU;
constexpr std::int64_t kLastRow = std::int64_t{1} << 60;

struct WriterStateHead {
  std::uint64_t magic = kMagic;
  std::uint64_t checksum = 0; // of the rest of the header and of the bytes after it
  std::uint64_t bytes = 0;    // after the header
  std::uint64_t signature = 0;
  std::uint64_t writer_id = 0;
  std::uint64_t capacity = 0;
  std::int64_t end = 0;
  std::uint64_t next_item = 0;
  std::uint64_t sequence = 0;
  std::uint64_t rows = 0;
  std::uint64_t items = 0;
  std::uint64_t shapes = 0;
  std::int64_t episode_rows = 0;
};

struct SavedItem {
  std::uint64_t key = 0;
  std::uint64_t first_row = 0; // relative to the first saved row
  std::uint32_t rows = 0;
  std::uint32_t history = 0;
  std::uint32_t shape = kNoShape;
  std::uint32_t zero = 0;
  double priority = 1;
};

static_assert(std::has_unique_object_representations_v<WriterStateHead>);
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

constexpr std::size_t kCheckedFrom = offsetof(WriterStateHead, bytes);

/// Takes the header and leaves the bytes that belong to it in `in`.
WriterStateHead take_head(std::span<const std::byte>& in, const RowLayout& layout,
                          std::int64_t capacity, std::int64_t reach) {
  const std::span<const std::byte> whole = in;
  const auto head = take_value<WriterStateHead>(in);
  if (head.magic != kMagic)
    refuse("is foreign or from an earlier program: its first bytes differ");
  if (head.bytes > in.size())
    refuse("is truncated");
  in = in.first(head.bytes);
  if (checksum_of(whole.first(sizeof head + head.bytes).subspan(kCheckedFrom)) != head.checksum)
    refuse("is damaged: its checksum differs");
  if (head.signature != fingerprint(layout.signature))
    refuse("was saved for different steps than these: " + describe(layout.signature));
  if (head.capacity != static_cast<std::uint64_t>(capacity))
    refuse("was saved with chunks of " + std::to_string(head.capacity) + " rows, not "
           + std::to_string(capacity) + "; give both the same chunk_rows");
  if (head.rows > kMostWindow || head.end < 0 || head.end > kLastRow)
    refuse("is damaged: its counts make no sense");
  if (head.shapes > in.size() || head.items > in.size() / sizeof(SavedItem)
      || head.rows > in.size() / (layout.row_bytes + 1))
    refuse("is truncated");
  if (head.episode_rows < 0 || head.episode_rows > kLastRow
      || std::min(head.episode_rows, reach) > static_cast<std::int64_t>(head.rows))
    refuse("is damaged: the open episode lacks rows");
  return head;
}

} // namespace

void Writer::save_state(std::vector<std::byte>& out) const {
  const auto first_row = [this](const Item& item) {
    return static_cast<std::int64_t>(item.chunks[0]->id()) * capacity_ + item.begin;
  };
  std::map<std::uint64_t, const Chunk*> chunks;
  for (const auto& chunk : recent_)
    chunks[chunk->id()] = chunk.get();
  std::int64_t begin = std::max(begin_, end_ - reach_);
  std::vector<const ItemShape*> shapes;
  for (const Item& item : items_) {
    begin = std::min(begin, first_row(item));
    for (std::size_t i = 0; i < item.chunks.size(); ++i)
      chunks[item.chunks[i]->id()] = item.chunks[i].get();
    if (item.shape && std::find(shapes.begin(), shapes.end(), item.shape.get()) == shapes.end())
      shapes.push_back(item.shape.get());
  }
  const std::size_t place = out.size();
  WriterStateHead head{.signature = fingerprint(layout_->signature),
                       .writer_id = writer_id_,
                       .capacity = static_cast<std::uint64_t>(capacity_),
                       .end = end_,
                       .next_item = next_item_,
                       .sequence = sequence_,
                       .rows = static_cast<std::uint64_t>(end_ - begin),
                       .items = items_.size(),
                       .shapes = shapes.size(),
                       .episode_rows = episode_rows_};
  put(out, head);
  for (const ItemShape* shape : shapes)
    put_shape(out, *shape);
  for (const Item& item : items_) {
    const auto shape = std::find(shapes.begin(), shapes.end(), item.shape.get());
    put(out, SavedItem{.key = item.key,
                       .first_row = static_cast<std::uint64_t>(first_row(item) - begin),
                       .rows = item.rows,
                       .history = item.history,
                       .shape = item.shape ? static_cast<std::uint32_t>(shape - shapes.begin())
                                           : kNoShape,
                       .priority = item.priority});
  }
  for (std::int64_t row = begin; row < end_; ++row) {
    const auto at = static_cast<std::size_t>(row % capacity_);
    const Chunk& chunk = *chunks.at(static_cast<std::uint64_t>(row / capacity_));
    out.push_back(static_cast<std::byte>(chunk.flags(at)));
    out.insert(out.end(), chunk.row(at), chunk.row(at) + layout_->row_bytes);
  }
  if (policy_)
    policy_->save_state(out);
  const auto replace_head = [&] { std::memcpy(out.data() + place, &head, sizeof head); };
  head.bytes = out.size() - place - sizeof head;
  replace_head();
  head.checksum = checksum_of(std::span<const std::byte>(out).subspan(place + kCheckedFrom));
  replace_head();
}

std::span<const std::byte> Writer::load_state(std::span<const std::byte> in) {
  const std::span<const std::byte> whole = in;
  const WriterStateHead head = take_head(in, *layout_, capacity_, reach_);
  const RowLayout& layout = *layout_;
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
      refuse("is damaged: an item is outside its rows");
    saved.push_back(item);
  }
  if (in.size() / (layout.row_bytes + 1) < head.rows)
    refuse("is truncated");
  Writer fresh(layout.signature, head.writer_id,
               {.chunk_rows = static_cast<int>(capacity_),
                .reach = std::max<std::int64_t>(1, static_cast<std::int64_t>(head.rows)),
                .priority = priority_});
  // Row numbers continue at the next whole chunk, because these chunks are not the saved writer's.
  const std::int64_t begin = (head.end + capacity_ - 1) / capacity_ * capacity_;
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
  if (policy_)
    policy_->load_state(in);
  fresh.policy_ = std::move(policy_);
  fresh.reach_ = reach_;
  fresh.next_item_ = head.next_item;
  fresh.sequence_ = head.sequence;
  fresh.episode_rows_ = head.episode_rows;
  *this = std::move(fresh);
  return whole.subspan(sizeof head + head.bytes);
}

} // namespace troupe::replay
