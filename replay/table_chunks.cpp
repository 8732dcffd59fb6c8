// Which chunks a table holds, how items lie in them, and which of them are encoded or on disk.
#include <algorithm>

#include "replay/storage_error.hpp"
#include "replay/table.hpp"

namespace troupe::replay {

namespace {

constexpr std::size_t kEncodeTries = 4; // chunks looked at in one insertion, and its own

std::pair<std::uint64_t, std::uint64_t> position(const BlobRef& ref) {
  return {ref.segment, ref.place.offset};
}

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
    held_[at->second] = {.chunk = chunk, .low = low, .high = high, .number = next_chunk_++};
    count(*chunk, 1);
    if (!chunk->encoded() && config_.compression != Compression::none)
      raw_.emplace_back(at->second, chunk.get());
    else if (store_)
      to_disk_.emplace_back(at->second, chunk.get());
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
  if (is_on_disk(*held.chunk))
    on_disk_.erase(position(held.chunk->ref()));
  if (held.previous != kNoPlace)
    held_[held.previous].next = kNoPlace;
  if (held.next != kNoPlace)
    held_[held.next].previous = kNoPlace;
  count(*held.chunk, -1);
  held_of_.erase(held.chunk.get());
  held.chunk.reset();
  free_held_.push_back(index);
}

/// Into what is held, or out of it.
void Table::count(const Chunk& chunk, int sign) {
  bytes_ += sign * static_cast<std::int64_t>(chunk.bytes());
  if (is_on_disk(chunk))
    disk_bytes_ += sign * static_cast<std::int64_t>(chunk.ref().size());
  else if (chunk.encoded())
    encoded_chunks_ += sign;
}

/// The same rows in another form.
void Table::exchange(std::uint32_t index, ChunkPtr chunk) {
  Held& held = held_[index];
  count(*held.chunk, -1);
  held_of_.erase(held.chunk.get());
  held.chunk = std::move(chunk);
  held_of_.emplace(held.chunk.get(), index);
  count(*held.chunk, 1);
}

void Table::close(std::span<const ChunkPtr> chunks) {
  for (const ChunkPtr& chunk : chunks)
    if (const auto at = held_of_.find(chunk.get()); at != held_of_.end())
      held_[at->second].closed = true;
}

/// Nobody will come by it with a new item: its writer said so, or is gone.
bool Table::is_cold(const Held& held) const {
  return held.closed || held.chunk.use_count() == 1;
}

/// Others wait for the next insertion.
void Table::encode_some(std::size_t added) {
  std::size_t encoded = 0;
  for (std::size_t tries = kEncodeTries + added; tries > 0 && !raw_.empty() && encoded <= added;
       --tries) {
    const auto [index, chunk] = raw_.front();
    raw_.pop_front();
    const Held& held = held_[index];
    if (held.chunk.get() != chunk)
      continue; // gone
    if (!is_cold(held)) {
      raw_.emplace_back(index, chunk);
      continue;
    }
    exchange(index, encoder_.encode(*chunk, held.low, held.high));
    if (store_)
      to_disk_.emplace_back(index, held.chunk.get());
    ++encoded;
  }
}

void Table::spill_to(std::shared_ptr<SegmentStore> store) {
  store_ = std::move(store);
  to_disk_.clear();
  for (const auto& [chunk, index] : held_of_)
    if (!is_on_disk(*chunk) && (chunk->encoded() || config_.compression == Compression::none))
      to_disk_.emplace_back(index, chunk);
  std::sort(to_disk_.begin(), to_disk_.end(), [this](const auto& a, const auto& b) {
    return held_[a.first].number < held_[b.first].number;
  });
}

/// The oldest chunk that may go to disk goes there.
Table::Spilled Table::spill_one() {
  if (failed_at_ == disk_bytes_)
    return Spilled::failed; // nothing has left the disk since
  for (std::size_t tries = to_disk_.size(); tries > 0; --tries) {
    const auto [index, chunk] = to_disk_.front();
    to_disk_.pop_front();
    if (held_[index].chunk.get() != chunk)
      continue; // gone
    if (!is_cold(held_[index])) {
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

bool Table::spill(std::uint32_t index) {
  const Held& held = held_[index];
  try {
    const ChunkPtr encoded =
        held.chunk->encoded() ? held.chunk : encoder_.encode(*held.chunk, held.low, held.high);
    const std::vector<std::byte> bytes = encoded->packed();
    const BlobRef ref = store_->append(bytes);
    exchange(index,
             std::make_shared<const Chunk>(encoded->range(held.low, held.high), store_, ref));
    on_disk_.emplace(position(ref), index);
    compact(2 * bytes.size());
    return true;
  } catch (const StorageError& error) {
    ++failed_spills_;
    spill_error_ = error.what();
    return false;
  }
}

/// What samples still read stays where they read it until they are done.
void Table::compact(std::uint64_t bytes) {
  for (const BlobMove& move : store_->compact(bytes)) {
    const auto at = on_disk_.find(position(move.from));
    if (at == on_disk_.end()) { // held by samples alone
      store_->release(move.to);
      continue;
    }
    const std::uint32_t index = at->second;
    on_disk_.erase(at);
    const Held& held = held_[index];
    exchange(index, std::make_shared<const Chunk>(held.chunk->range(held.low, held.high), store_,
                                                  move.to));
    on_disk_.emplace(position(move.to), index);
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
