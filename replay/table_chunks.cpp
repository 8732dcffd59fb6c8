// Which chunks a table holds, how items lie in them, and which of them are encoded.
#include <algorithm>

#include "replay/table.hpp"

namespace troupe::replay {

namespace {

constexpr std::int64_t kChunksPerPlan = 256; // what suits is looked at again
constexpr std::size_t kEncodeTries = 4;      // chunks looked at in one insertion, and its own

} // namespace

std::uint32_t Table::hold(const std::shared_ptr<const Chunk>& chunk, std::uint32_t low,
                          std::uint32_t high) {
  const auto [at, added] = held_of_.try_emplace(chunk.get(), kNoPlace);
  if (added) {
    if (free_held_.empty()) {
      at->second = static_cast<std::uint32_t>(held_.size());
      held_.emplace_back();
    } else {
      at->second = free_held_.back();
      free_held_.pop_back();
    }
    held_[at->second] = {chunk, 0, low, high, kNoPlace, kNoPlace};
    bytes_ += static_cast<std::int64_t>(chunk->bytes());
    if (chunk->encoded())
      ++encoded_chunks_;
    else if (config_.compression != Compression::none)
      raw_.emplace_back(at->second, chunk.get());
  }
  return at->second;
}

std::uint32_t Table::cover(const std::shared_ptr<const Chunk>& chunk, std::uint32_t low,
                           std::uint32_t high) {
  // Consecutive items mostly lie in one chunk: look there before asking the map.
  std::uint32_t index = newest_held_;
  if (index >= held_.size() || held_[index].chunk != chunk)
    index = newest_held_ = hold(chunk, low, high);
  Held& held = held_[index];
  ++held.items;
  held.low = std::min(held.low, low);
  held.high = std::max(held.high, high);
  return index;
}

void Table::release(std::uint32_t index) {
  Held& held = held_[index];
  if (--held.items > 0)
    return;
  if (held.previous != kNoPlace)
    held_[held.previous].next = kNoPlace;
  if (held.next != kNoPlace)
    held_[held.next].previous = kNoPlace;
  bytes_ -= static_cast<std::int64_t>(held.chunk->bytes());
  encoded_chunks_ -= held.chunk->encoded() ? 1 : 0;
  held_of_.erase(held.chunk.get());
  held.chunk.reset();
  free_held_.push_back(index);
}

ChunkPtr Table::encode(const Chunk& chunk, std::uint32_t low, std::uint32_t high) {
  if (encoded_++ % kChunksPerPlan == 0) {
    plans_.clear();
    const RowLayout& layout = chunk.layout();
    for (std::size_t i = 0; i < layout.columns.size(); ++i)
      plans_.push_back(
          plan_column(column_shape(signature_.columns[i]),
                      {chunk.row(low) + layout.columns[i].offset, layout.row_bytes, high - low},
                      config_.compression, scratch_));
  }
  return std::make_shared<const Chunk>(chunk, low, high, plans_, scratch_);
}

/// Nobody can come by a chunk again that only this table holds: no writer, no sample, no insertion
/// on its way. Others wait for the next insertion.
void Table::encode_some(std::size_t added) {
  std::size_t encoded = 0;
  for (std::size_t tries = kEncodeTries + added; tries > 0 && !raw_.empty() && encoded <= added;
       --tries) {
    const auto [index, chunk] = raw_.front();
    raw_.pop_front();
    Held& held = held_[index];
    if (held.chunk.get() != chunk)
      continue; // gone
    if (held.chunk.use_count() > 1) {
      raw_.emplace_back(index, chunk);
      continue;
    }
    bytes_ -= static_cast<std::int64_t>(chunk->bytes());
    held_of_.erase(chunk);
    held.chunk = encode(*chunk, held.low, held.high);
    held_of_.emplace(held.chunk.get(), index);
    bytes_ += static_cast<std::int64_t>(held.chunk->bytes());
    ++encoded_chunks_;
    ++encoded;
  }
}

void Table::cover_window(const Item& item, Slot& slot) {
  const std::uint32_t capacity = item.chunks[0]->capacity();
  const std::uint32_t end = item.begin + item.rows;
  slot.chunk = cover(item.chunks[0], item.begin, std::min(end, capacity));
  std::uint32_t last = slot.chunk;
  for (std::uint32_t i = 1; i * capacity < end; ++i) {
    const std::uint32_t next = cover(item.chunks[i], 0, std::min(end - i * capacity, capacity));
    held_[last].next = next;
    held_[next].previous = last;
    last = next;
  }
}

void Table::release_window(const Slot& slot) {
  std::uint32_t at = slot.chunk;
  for (std::uint32_t left = chunks_of(slot); left > 0; --left) {
    const std::uint32_t next = held_[at].next;
    release(at);
    at = next;
  }
}

std::uint32_t Table::shape_number(const ShapePtr& shape) {
  if (!shape)
    return 0;
  const auto [at, added] =
      shape_numbers_.try_emplace(*shape, static_cast<std::uint32_t>(shapes_.size()));
  if (added)
    shapes_.push_back(shape);
  return at->second;
}

} // namespace troupe::replay
