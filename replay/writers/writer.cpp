#include "replay/writers/writer.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "replay/table/selector.hpp"

namespace troupe::replay {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxWrittenChunkBytes = std::size_t{1} << 30;

std::int64_t rows_per_chunk(const RowLayout& layout, const WriterOptions& options) {
  if (options.chunk_rows == 0)
    return static_cast<std::int64_t>(
        std::clamp<std::size_t>(kChunkBytes / layout.row_bytes, 16, 1024));
  const auto most = static_cast<std::int64_t>(kMaxWrittenChunkBytes / layout.row_bytes);
  if (options.chunk_rows < 1 || options.chunk_rows > most)
    throw std::invalid_argument("replay writer: chunk_rows is " + std::to_string(options.chunk_rows)
                                + " but must be 1 to " + std::to_string(most)
                                + " (chunks of at most 1 GiB); 0 lets the writer choose");
  return options.chunk_rows;
}

std::int64_t checked_reach(std::int64_t reach) {
  if (reach < 1 || reach > kMostWindow)
    throw std::invalid_argument("replay writer: reach is " + std::to_string(reach)
                                + " but must be 1 to " + std::to_string(kMostWindow) + " rows");
  return reach;
}

} // namespace

Writer::Writer(const Signature& signature, std::uint64_t writer_id, const WriterOptions& options,
               std::unique_ptr<ItemPolicy> policy)
    : layout_(std::make_shared<const RowLayout>(signature)),
      writer_id_(writer_id),
      capacity_(rows_per_chunk(*layout_, options)),
      reach_(checked_reach(options.reach)),
      priority_(options.priority),
      policy_(std::move(policy)) {}

void Writer::new_chunk() {
  if (current_ && taken_ < end_) {
    const std::int64_t from = capacity_ - (end_ - taken_);
    full_rows_.push_back(
        {current_, static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(end_ - taken_)});
    taken_ = end_;
  }
  filled_ = 0;
  current_ = std::make_shared<Chunk>(layout_, static_cast<std::uint64_t>(end_ / capacity_),
                                     static_cast<std::uint32_t>(capacity_));
  close_chunks();
  recent_.push_back(current_);
}

/// Closes the chunks that new items can no longer cover. If no pending item may cover them either,
/// drops their rows that were not taken.
void Writer::close_chunks() {
  const std::int64_t oldest = std::max<std::int64_t>(0, end_ - reach_) / capacity_;
  if (recent_.empty() || static_cast<std::int64_t>(recent_.front()->id()) >= oldest)
    return;
  const auto kept = std::find_if(recent_.begin(), recent_.end(), [oldest](const ChunkPtr& chunk) {
    return static_cast<std::int64_t>(chunk->id()) >= oldest;
  });
  auto unknown = kept; // end of the chunks that a table may know
  if (items_.empty()) {
    std::erase_if(full_rows_, [oldest](const ChunkRows& rows) {
      return static_cast<std::int64_t>(rows.chunk->id()) < oldest;
    });
    unknown = std::find_if(recent_.begin(), kept, [this](const ChunkPtr& chunk) {
      return static_cast<std::int64_t>(chunk->id()) * capacity_ >= named_;
    });
  }
  closed_.insert(closed_.end(), recent_.begin(), unknown);
  recent_.erase(recent_.begin(), kept);
}

std::span<std::byte> Writer::next(std::size_t column) {
  if (!current_ || filled_ == capacity_)
    new_chunk();
  const RowLayout::Column& at = layout_->columns[column];
  return {current_->row(static_cast<std::size_t>(filled_)) + at.offset, at.bytes};
}

void Writer::append(std::uint8_t flags) {
  std::byte* row = next(0).data();
  // Gaps are set to zero so that equal steps have equal bytes in checkpoints and messages.
  for (const RowLayout::Column& gap : layout_->gaps)
    std::fill_n(row + gap.offset, gap.bytes, std::byte{0});
  current_->flags()[filled_] = flags;
  ++filled_;
  ++end_;
}

void Writer::append_step(bool last) {
  if (policy_)
    policy_->before_row(*this, episode_rows_);
  append(static_cast<std::uint8_t>((episode_rows_ == 0 ? Chunk::kFirst : 0)
                                   | (last ? Chunk::kLast : 0)));
  const std::int64_t rows = ++episode_rows_;
  if (last)
    episode_rows_ = 0;
  if (policy_)
    policy_->after_row(*this, rows, last);
}

void Writer::append_zeros(std::int64_t count) {
  for (; count > 0; --count) {
    const std::span<std::byte> first = next(0);
    std::fill_n(first.data(), layout_->row_bytes, std::byte{0});
    append();
  }
}

const std::shared_ptr<Chunk>& Writer::chunk_of(std::int64_t row) const {
  return recent_[static_cast<std::size_t>(row / capacity_)
                 - static_cast<std::size_t>(recent_.front()->id())];
}

void Writer::check_kept(std::int64_t row, std::int64_t least) const {
  if (row < std::max({begin_, end_ - reach_, least}) || row >= end_)
    throw std::out_of_range("replay writer: row " + std::to_string(row) + " is not one of ["
                            + std::to_string(std::max({begin_, end_ - reach_, least})) + ", "
                            + std::to_string(end_) + "); give the writer a longer reach");
}

std::span<const std::byte> Writer::at(std::int64_t row, std::size_t column) const {
  check_kept(row, begin_);
  const RowLayout::Column& place = layout_->columns.at(column);
  return {chunk_of(row)->row(static_cast<std::size_t>(row % capacity_)) + place.offset,
          place.bytes};
}

std::span<std::byte> Writer::rewrite(std::int64_t row, std::size_t column) {
  check_kept(row, named_);
  const RowLayout::Column& place = layout_->columns.at(column);
  return {chunk_of(row)->row(static_cast<std::size_t>(row % capacity_)) + place.offset,
          place.bytes};
}

void Writer::check_item(std::int64_t first, std::int64_t count, std::uint32_t history,
                        const ItemShape* shape, double priority) const {
  if (count < 1 || first < std::max(begin_, end_ - reach_) || count > end_ - first
      || history >= count)
    throw std::invalid_argument(
        "replay writer: an item of " + std::to_string(count) + " rows from row "
        + std::to_string(first) + ", " + std::to_string(history)
        + " of them history, is not among the newest " + std::to_string(reach_)
        + " rows (the next is " + std::to_string(end_) + "); give the writer a longer reach");
  if (shape != nullptr && !fits(*shape, layout_->columns.size(), static_cast<std::uint32_t>(count)))
    throw std::invalid_argument(
        "replay writer: an item's shape has slices of " + std::to_string(shape->columns.size())
        + " columns, more than " + std::to_string(kMostSlices)
        + " slices, or rows outside its window of " + std::to_string(count));
  if (!valid_priority(priority))
    check_priority(priority, "a new item");
}

void Writer::add_item(std::int64_t first, std::int64_t count, std::uint32_t history, ShapePtr shape,
                      double priority) {
  check_item(first, count, history, shape.get(), priority);
  // Items are constructed in place: zeroing one first would cost more than the rest of this
  // function.
  const auto add = [&](ChunkRun chunks, std::int64_t begin) -> Item& {
    return items_.emplace_back(next_item_++, std::move(chunks), std::move(shape),
                               static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(count),
                               history, 0U, 0U, priority, 0.0);
  };
  if (const std::int64_t begin = first - (end_ - filled_); begin >= 0) {
    add(ChunkPtr(current_), begin);
    return;
  }
  Item& item = add({}, first % capacity_);
  const std::int64_t chunks = (first + count - 1) / capacity_ - first / capacity_ + 1;
  item.chunks.resize(static_cast<std::size_t>(chunks));
  for (std::int64_t i = 0; i < chunks; ++i)
    item.chunks.set(static_cast<std::size_t>(i), chunk_of(first + i * capacity_));
}

void Writer::add_item(const Window& window, ShapePtr shape) {
  add_item(window.first, window.count, window.history, std::move(shape),
           priority_ ? priority_(*this, window) : 1);
}

InsertionPtr Writer::take() {
  if (items_.empty())
    return nullptr;
  const std::int64_t before =
      policy_ && policy_->keeps_open_episode() ? end_ - episode_rows_ : end_;
  auto insertion = std::make_shared<Insertion>();
  insertion->writer_id = writer_id_;
  insertion->sequence = ++sequence_;
  while (!full_rows_.empty()) { // rows from `before` on are not taken yet
    ChunkRows& part = full_rows_.front();
    const std::int64_t left =
        before - static_cast<std::int64_t>(part.chunk->id()) * capacity_ - part.first;
    if (left < part.count) {
      if (left > 0) {
        const auto count = static_cast<std::uint32_t>(left);
        insertion->rows.push_back({part.chunk, part.first, count});
        part.first += count;
        part.count -= count;
      }
      break;
    }
    insertion->rows.push_back(std::move(part));
    full_rows_.erase(full_rows_.begin());
  }
  if (taken_ < before) {
    const std::int64_t from = taken_ - (end_ - filled_);
    insertion->rows.push_back(
        {current_, static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(before - taken_)});
    taken_ = before;
  }
  named_ = before;
  close_chunks();
  insertion->closed.swap(closed_);
  insertion->items.swap(items_);
  items_.reserve(insertion->items.size()); // the next insertion is likely to be as large
  return insertion;
}

} // namespace troupe::replay
