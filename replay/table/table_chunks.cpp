#include "replay/table/table_chunks.hpp"

#include <algorithm>

#include "replay/storage/storage_error.hpp"

namespace troupe::replay {

namespace {

constexpr std::size_t kEncodeTries = 4; // chunks examined per insertion, besides the ones it added

std::pair<std::uint64_t, std::uint64_t> position(const BlobRef& ref) {
  return {ref.segment, ref.place.offset};
}

} // namespace

std::uint32_t TableChunks::hold(const ChunkPtr& chunk, std::uint32_t low, std::uint32_t high) {
  const auto [at, added] = index_of_.try_emplace(chunk.get(), kNone);
  if (!added)
    return at->second;
  if (free_.empty()) {
    at->second = static_cast<std::uint32_t>(held_.size());
    held_.emplace_back();
  } else {
    at->second = free_.back();
    free_.pop_back();
  }
  held_[at->second] = {.chunk = chunk, .low = low, .high = high, .number = next_number_++};
  count(*chunk, 1);
  if (!chunk->encoded() && compression_ != Compression::none) {
    raw_.emplace_back(at->second, chunk.get());
    ++added_raw_;
  } else if (store_) {
    to_disk_.emplace_back(at->second, chunk.get());
  }
  return at->second;
}

std::uint32_t TableChunks::cover_rows(const ChunkPtr& chunk, std::uint32_t low,
                                      std::uint32_t high) {
  // Consecutive items are usually in one chunk, so look there before consulting the map.
  std::uint32_t index = newest_;
  if (index >= held_.size() || held_[index].chunk != chunk)
    index = newest_ = hold(chunk, low, high);
  Held& held = held_[index];
  ++held.items;
  held.low = std::min(held.low, low);
  held.high = std::max(held.high, high);
  return index;
}

ItemWindow TableChunks::cover(const Item& item, std::uint32_t shape) {
  const std::uint32_t capacity = item.chunks[0]->capacity();
  const std::uint32_t end = item.begin + item.rows;
  const std::uint32_t first = cover_rows(item.chunks[0], item.begin, std::min(end, capacity));
  std::uint32_t last = first;
  for (std::uint32_t i = 1; i * capacity < end; ++i) {
    const std::uint32_t next =
        cover_rows(item.chunks[i], 0, std::min(end - i * capacity, capacity));
    held_[last].next = next;
    held_[next].previous = last;
    last = next;
  }
  return {first, item.begin, item.rows, item.history, shape};
}

void TableChunks::release(const ItemWindow& window) {
  for_each(window, [this](std::uint32_t index) { release_chunk(index); });
}

void TableChunks::release_chunk(std::uint32_t index) {
  Held& held = held_[index];
  if (--held.items > 0)
    return;
  if (lies_in_store(*held.chunk))
    on_disk_.erase(position(held.chunk->ref()));
  if (held.previous != kNone)
    held_[held.previous].next = kNone;
  if (held.next != kNone)
    held_[held.next].previous = kNone;
  count(*held.chunk, -1);
  index_of_.erase(held.chunk.get());
  held.chunk.reset();
  free_.push_back(index);
}

/// Adds a chunk to the totals (`sign` 1) or subtracts it (-1).
void TableChunks::count(const Chunk& chunk, int sign) {
  bytes_ += sign * static_cast<std::int64_t>(chunk.bytes());
  if (lies_in_store(chunk))
    disk_bytes_ += sign * static_cast<std::int64_t>(chunk.ref().size());
  else if (chunk.encoded())
    encoded_ += sign;
}

/// Replaces a chunk with `chunk`, which contains the same rows in another form.
void TableChunks::replace(std::uint32_t index, ChunkPtr chunk) {
  Held& held = held_[index];
  count(*held.chunk, -1);
  index_of_.erase(held.chunk.get());
  held.chunk = std::move(chunk);
  index_of_.emplace(held.chunk.get(), index);
  count(*held.chunk, 1);
}

void TableChunks::finish_insertion(std::span<const ChunkPtr> closed) {
  for (const ChunkPtr& chunk : closed)
    if (const auto at = index_of_.find(chunk.get()); at != index_of_.end())
      held_[at->second].closed = true;
  encode_some(std::exchange(added_raw_, 0));
}

void TableChunks::encode_some(std::size_t added) {
  std::size_t encoded = 0;
  for (std::size_t tries = kEncodeTries + added; tries > 0 && !raw_.empty() && encoded <= added;
       --tries) {
    const auto [index, chunk] = raw_.front();
    raw_.pop_front();
    const Held& held = held_[index];
    if (held.chunk.get() != chunk)
      continue;
    if (!is_unused(held)) {
      raw_.emplace_back(index, chunk);
      continue;
    }
    replace(index, encoder_.encode(*chunk, held.low, held.high));
    if (store_)
      to_disk_.emplace_back(index, held.chunk.get());
    ++encoded;
  }
}

void TableChunks::spill_to(std::shared_ptr<SegmentStore> store) {
  store_ = std::move(store);
  to_disk_.clear();
  for (const auto& [chunk, index] : index_of_)
    if (!lies_in_store(*chunk) && (chunk->encoded() || compression_ == Compression::none))
      to_disk_.emplace_back(index, chunk);
  std::sort(to_disk_.begin(), to_disk_.end(), [this](const auto& a, const auto& b) {
    return held_[a.first].number < held_[b.first].number;
  });
}

TableChunks::Spilled TableChunks::spill_oldest() {
  if (!store_ || failed_at_ == disk_bytes_)
    return Spilled::failed;
  for (std::size_t tries = to_disk_.size(); tries > 0; --tries) {
    const auto [index, chunk] = to_disk_.front();
    to_disk_.pop_front();
    if (held_[index].chunk.get() != chunk)
      continue;
    if (!is_unused(held_[index])) {
      to_disk_.emplace_back(index, chunk);
      continue;
    }
    if (spill(index))
      return Spilled::one;
    to_disk_.emplace_front(index, chunk);
    failed_at_ = disk_bytes_;
    return Spilled::failed;
  }
  return Spilled::nothing;
}

bool TableChunks::spill(std::uint32_t index) {
  const Held& held = held_[index];
  try {
    const ChunkPtr encoded =
        held.chunk->encoded() ? held.chunk : encoder_.encode(*held.chunk, held.low, held.high);
    const std::vector<std::byte> bytes = encoded->packed();
    const BlobRef ref = store_->append(bytes);
    replace(index, std::make_shared<const Chunk>(encoded->range(held.low, held.high), store_, ref));
    on_disk_.emplace(position(ref), index);
    compact(2 * bytes.size());
    return true;
  } catch (const StorageError& error) {
    ++failed_spills_;
    spill_error_ = error.what();
    return false;
  }
}

/// Samples returned earlier keep reading at the old position until they are dropped.
void TableChunks::compact(std::uint64_t bytes) {
  for (const BlobMove& move : store_->compact(bytes)) {
    const auto at = on_disk_.find(position(move.from));
    if (at == on_disk_.end()) { // only samples still hold it
      store_->release(move.to);
      continue;
    }
    const std::uint32_t index = at->second;
    on_disk_.erase(at);
    const Held& held = held_[index];
    replace(index,
            std::make_shared<const Chunk>(held.chunk->range(held.low, held.high), store_, move.to));
    on_disk_.emplace(position(move.to), index);
  }
}

void TableChunks::restore(std::vector<Held> held, std::uint64_t next_number) {
  held_ = std::move(held);
  next_number_ = next_number;
  for (std::uint32_t i = 0; i < held_.size(); ++i) {
    const Chunk& chunk = *held_[i].chunk;
    index_of_.emplace(&chunk, i);
    count(chunk, 1);
    if (lies_in_store(chunk))
      on_disk_.emplace(position(chunk.ref()), i);
  }
  if (store_)
    spill_to(store_);
}

} // namespace troupe::replay
