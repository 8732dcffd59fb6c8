// Reads what table_snapshot.cpp and table_checkpoint.cpp write, and believes none of it.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "replay/blocks.hpp"
#include "replay/checkpoint_reader.hpp"
#include "replay/replay.pb.h"
#include "replay/table.hpp"
#include "replay/table_checkpoint.hpp"
#include "replay/table_config_wire.hpp"
#include "replay/table_loader.hpp"

namespace troupe::replay {

namespace {
constexpr std::uint64_t kMaxHeadBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{2} << 30;
constexpr std::uint64_t kMaxItems = std::uint64_t{1} << 31;

/// A value of each item.
template <class Value>
std::vector<Value> values(BlockReader& file, std::uint64_t items) {
  if (items > kMaxItems)
    file.fail("is damaged: it claims " + std::to_string(items) + " items");
  std::vector<Value> all(items);
  file.block(all.data(), items * sizeof(Value));
  return all;
}
} // namespace

wire::SavedTable TableLoader::load_head(BlockReader& file) {
  char magic[sizeof kTableMagic];
  std::uint64_t version = 0;
  file.raw(magic, sizeof magic);
  if (std::memcmp(magic, kTableMagic, sizeof magic) != 0)
    file.fail("is not a replay table");
  file.raw(&version, sizeof version);
  if (version != kTableVersion)
    throw std::runtime_error(
        file.source() + " has version " + std::to_string(version)
        + " of the format and this program reads " + std::to_string(kTableVersion)
        + (version < kTableVersion ? ": it was saved by an earlier program, which can still read it"
                                   : ": it was saved by a later program, or is damaged")
        + "; resume with that program, or without the replay's items");
  std::string bytes(file.begin_block(kMaxHeadBytes), '\0');
  file.unpack(bytes.data(), bytes.size());
  wire::SavedTable head;
  if (!head.ParseFromString(bytes) || head.random_size() != 4
      || head.items() > head.end() - std::min(head.end(), head.first_key())
      || !valid_priority(head.greatest_priority()))
    file.fail("is damaged: its head makes no sense");
  return head;
}

/// Refuses other transitions, another configuration, and more memory than that allows.
std::string TableLoader::compare(const BlockReader& file, const wire::SavedTable& head,
                                 const Table& table, Table::ConfigChange change) {
  if (const std::string why = replay::difference(table.signature_, signature_of(head.signature()));
      !why.empty())
    file.fail("holds other steps or items: " + why + "; resume with the former ones");
  const RowLayout layout(table.signature_);
  const TableConfig config = config_of(head.config());
  const std::string changed = difference(config, table.config_);
  if (!changed.empty() && change == Table::ConfigChange::refuse)
    throw std::runtime_error(file.source() + " was saved with another configuration: " + changed
                             + "; resume with the former values, or accept the change");
  std::uint64_t bytes = 0;
  std::uint64_t largest = 0;
  for (const wire::SavedChunk& chunk : head.chunks()) {
    const std::uint64_t size = chunk.capacity() * layout.row_bytes;
    if (size > kMaxChunkBytes || chunk.low() >= chunk.high() || chunk.high() > chunk.capacity()
        || chunk.next() > static_cast<std::uint64_t>(head.chunks_size()))
      file.fail("is damaged: a chunk makes no sense");
    bytes += size;
    largest = std::max(largest, size);
  }
  // The newest item stays whatever its size; of the other removers the bytes are not bounded so.
  const bool ring = config.remover.kind == SelectorKind::fifo && config.max_times_sampled == 0;
  const auto room = static_cast<std::uint64_t>(std::max<std::int64_t>(0, config.max_bytes));
  const bool too_much = ring && head.items() > 1 && config.compression == Compression::none
                        && bytes > 2 * largest + room;
  if (head.items() > static_cast<std::uint64_t>(std::max<std::int64_t>(0, config.max_items))
      || (too_much && !head.on_disk()))
    file.fail("is damaged: it holds more than its limits");
  if (head.on_disk() && !table.store_
      && bytes > static_cast<std::uint64_t>(table.config_.max_bytes))
    throw std::runtime_error(file.source() + " holds " + std::to_string(bytes)
                             + " bytes of steps, some of them on disk, and replay.max_bytes is "
                             + std::to_string(table.config_.max_bytes)
                             + ": raise it, or give the table a folder to spill to");
  return changed;
}

TableLoader::Items TableLoader::load_items(BlockReader& file, const wire::SavedTable& head,
                                           const Table& saved) {
  const std::uint64_t count = head.items();
  Items items;
  for (const wire::Shape& shape : head.shapes()) {
    items.shapes.push_back(shape_of(shape));
    if (!fits(*items.shapes.back(), saved.signature_.columns.size(), kNoPlace))
      file.fail("is damaged: a shape of items makes no sense");
  }
  items.slots = values<Table::Slot>(file, count);
  for (const Table::Slot& slot : items.slots)
    check_slot(file, head, items, slot);
  items.times = values<std::uint32_t>(file, count);
  if (saved.keeps_priorities()) {
    items.priorities = values<double>(file, count);
    if (!std::all_of(items.priorities.begin(), items.priorities.end(), valid_priority))
      file.fail("is damaged: a priority makes no sense");
  }
  std::uint64_t key = head.first_key();
  if (saved.is_ring())
    for (std::uint64_t i = 0; i < count; ++i)
      items.keys.push_back(key++);
  else
    for (const std::uint64_t distance : values<std::uint64_t>(file, count)) {
      if (items.keys.empty() != (distance == 0) || distance >= head.end() - key)
        file.fail("is damaged: the keys make no sense");
      items.keys.push_back(key += distance);
    }
  if (count > 0 && items.keys.back() >= head.end())
    file.fail("is damaged: the keys make no sense");
  if (saved.sampler_)
    items.sampler = load_order(file, count);
  if (saved.remover_)
    items.remover = load_order(file, count);
  file.end();
  return items;
}

std::vector<std::uint32_t> TableLoader::load_order(BlockReader& file, std::uint64_t count) {
  std::vector<std::uint32_t> order = values<std::uint32_t>(file, count);
  std::vector<bool> seen(count);
  for (const std::uint32_t place : order) {
    if (place >= count || seen[place])
      file.fail("is damaged: an order of items makes no sense");
    seen[place] = true;
  }
  return order;
}

/// The items into an empty table; of one in a ring the keys follow one another.
void TableLoader::place_items(const Items& items, const wire::SavedTable& head, bool same,
                              Table& table) {
  const std::size_t count = items.slots.size();
  const bool ring = table.is_ring();
  std::size_t size = count;
  if (ring)
    for (size = 1024; size < count;)
      size *= 2;
  table.shapes_ = items.shapes;
  for (std::size_t i = 1; i < items.shapes.size(); ++i)
    table.shape_numbers_.emplace(*items.shapes[i], static_cast<std::uint32_t>(i));
  table.end_ = head.end();
  table.begin_ = head.end() - count;
  table.slots_.resize(size);
  table.times_.resize(size);
  if (table.keeps_priorities())
    table.priorities_.resize(size);
  if (!ring)
    table.keys_ = items.keys;
  std::vector<std::uint32_t> places(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto place = static_cast<std::uint32_t>(ring ? (table.begin_ + i) & (size - 1) : i);
    places[i] = place;
    table.slots_[place] = items.slots[i];
    table.times_[place] = items.times[i];
    if (table.keeps_priorities())
      table.priorities_[place] = items.priorities.empty() ? 1 : items.priorities[i];
    if (!ring)
      table.index_.insert(items.keys[i], place);
    if (table.config_.max_times_sampled > 0)
      table.used_samples_ += items.times[i];
  }
  const auto fill = [&](Selector* selector, const std::vector<std::uint32_t>& order) {
    for (std::size_t i = 0; selector != nullptr && i < count; ++i) {
      const std::uint32_t place = places[same ? order[i] : i];
      selector->insert(place, table.keeps_priorities() ? table.priorities_[place] : 1);
    }
  };
  fill(table.sampler_.get(), items.sampler);
  fill(table.remover_.get(), items.remover);
}

/// Each chunk of the window follows from the one before, and all its rows are there.
void TableLoader::check_slot(const BlockReader& file, const wire::SavedTable& head,
                             const Items& items, const Table::Slot& slot) {
  const auto chunks = static_cast<std::uint32_t>(head.chunks_size());
  bool fine =
      slot.chunk < chunks && slot.rows >= 1 && slot.history < slot.rows
      && slot.shape < items.shapes.size()
      && (slot.shape == 0
          || fits(*items.shapes[slot.shape], items.shapes[slot.shape]->columns.size(), slot.rows));
  const std::uint32_t capacity = fine ? head.chunks(static_cast<int>(slot.chunk)).capacity() : 1;
  std::uint64_t left = std::uint64_t{slot.begin} + slot.rows; // in this chunk and those after it
  std::uint32_t low = slot.begin;
  for (std::uint32_t at = slot.chunk; fine; low = 0) {
    const wire::SavedChunk& chunk = head.chunks(static_cast<int>(at));
    const std::uint64_t end = std::min<std::uint64_t>(left, capacity);
    fine =
        chunk.capacity() == capacity && low >= chunk.low() && low < capacity && end <= chunk.high();
    left -= end;
    if (left == 0)
      break;
    fine = fine && chunk.next() > 0;
    at = chunk.next() - 1;
  }
  if (!fine)
    file.fail("is damaged: an item lies outside its chunks");
}

/// The newest chunks into memory, as much as there may be, the others where they lie.
void TableLoader::load_chunks(std::span<const Stored> stored, const wire::SavedTable& head,
                              Table& table) {
  const auto layout = std::make_shared<const RowLayout>(table.signature_);
  const auto count = static_cast<std::size_t>(head.chunks_size());
  std::map<const CheckpointReader*, std::vector<BlobRef>> refs; // of from->blobs()
  if (table.store_)
    for (const Stored& chunk : stored)
      if (!refs.contains(chunk.from))
        refs.emplace(chunk.from, table.store_->adopt(*chunk.from));
  table.held_.resize(count);
  for (std::size_t i = count; i-- > 0;) {
    const wire::SavedChunk& saved = head.chunks(static_cast<int>(i));
    const CheckpointReader& from = *stored[i].from;
    const BlockReader& file = *stored[i].file;
    const CheckpointBlob* blob = from.find(stored[i].key);
    if (blob == nullptr || saved.number() >= head.next_chunk())
      file.fail("is damaged: a chunk is missing");
    const ChunkRange range{layout, saved.id(), saved.capacity(), saved.low(), saved.high()};
    std::shared_ptr<const Chunk> chunk;
    const auto older = static_cast<std::int64_t>(i * sizeof(Chunk)); // if all are on disk
    if (table.store_ && table.bytes_ + older >= table.config_.max_bytes) {
      const BlobRef& ref = refs.at(&from)[static_cast<std::size_t>(blob - from.blobs().data())];
      chunk = std::make_shared<const Chunk>(range, table.store_, ref);
      if (!table.on_disk_.emplace(std::pair(ref.segment, ref.place.offset), i).second)
        file.fail("is damaged: two chunks lie at one place");
    } else {
      chunk = read_chunk(from, *blob, range, table);
    }
    table.held_of_[chunk.get()] = static_cast<std::uint32_t>(i);
    table.held_[i] = {.chunk = chunk,
                      .low = saved.low(),
                      .high = saved.high(),
                      .number = saved.number(),
                      .closed = true};
    table.count(*chunk, 1);
  }
  for (const auto& [from, all] : refs)
    for (const BlobRef& ref : all)
      if (!table.on_disk_.contains({ref.segment, ref.place.offset}))
        table.store_->release(ref);
  table.next_chunk_ = head.next_chunk();
  link_chunks(stored, head, table);
  for (const std::uint32_t place : table.places_by_key()) {
    const Table::Slot& slot = table.slots_[place];
    std::uint32_t at = slot.chunk;
    for (std::uint32_t left = table.chunks_of(slot); left > 0; --left) {
      ++table.held_[at].items;
      at = table.held_[at].next;
    }
  }
  for (std::size_t i = 0; i < count; ++i)
    if (table.held_[i].items == 0)
      stored[i].file->fail("is damaged: no item refers to one of its chunks");
  if (table.store_)
    table.spill_to(table.store_);
}

std::shared_ptr<const Chunk> TableLoader::read_chunk(const CheckpointReader& from,
                                                     const CheckpointBlob& blob,
                                                     const ChunkRange& range, Table& table) {
  std::vector<std::byte> bytes(blob.place.size);
  from.read(blob, bytes);
  auto encoded = std::make_shared<const Chunk>(range, bytes);
  if (table.config_.compression != Compression::none)
    return encoded;
  return table.encoder_.decode(*encoded, range.low, range.high);
}

void TableLoader::link_chunks(std::span<const Stored> stored, const wire::SavedTable& head,
                              Table& table) {
  for (int i = 0; i < head.chunks_size(); ++i) {
    if (head.chunks(i).next() == 0)
      continue;
    const std::uint32_t next = head.chunks(i).next() - 1;
    if (next == static_cast<std::uint32_t>(i))
      stored[static_cast<std::size_t>(i)].file->fail("is damaged: a chunk goes on in itself");
    table.held_[static_cast<std::size_t>(i)].next = next;
    table.held_[next].previous = static_cast<std::uint32_t>(i);
  }
}

void TableLoader::load_counters(const wire::SavedTable& head, Table& table) {
  std::copy(head.random().begin(), head.random().end(), table.random_.state.begin());
  table.sampled_ = head.sampled();
  table.dropped_duplicates_ = head.dropped_duplicates();
  table.limiter_.restore(head.limiter_inserted(), head.limiter_sampled());
  table.greatest_priority_ = head.greatest_priority();
  table.updated_priorities_ = head.updated_priorities();
  table.late_priorities_ = head.late_priorities();
  table.insertions_ = head.insertions();
  for (const wire::SavedWriter& saved : head.writers())
    table.writers_[saved.writer()] = {saved.newest(), saved.seen(), saved.used()};
}

/// An empty table of the saved configuration: which parts the file has follows from it.
Table TableLoader::saved_table(const BlockReader& file, const wire::SavedTable& head,
                               const Signature& signature) {
  try {
    return Table(config_of(head.config()), signature, 0);
  } catch (const std::invalid_argument& e) {
    file.fail("is damaged: " + std::string(e.what()));
  }
}

/// Items that this table may not hold leave it; its limiter begins anew.
void TableLoader::keep_to_limits(Table& table) {
  if (table.config_.max_times_sampled > 0)
    for (const std::uint32_t place : table.places_by_key())
      if (table.times_[place] >= table.config_.max_times_sampled)
        table.remove(place);
  table.remove_above_limits(0);
  table.limiter_.reconfigure(table.config_.limiter, table.size());
}

std::string TableLoader::load(Table& table, const std::filesystem::path& folder,
                              Table::ConfigChange change) {
  const CheckpointReader from(folder);
  BlockReader file(from.header(), folder.string());
  const wire::SavedTable head = load_head(file);
  const std::string changed = compare(file, head, table, change);
  const Items items = load_items(file, head, saved_table(file, head, table.signature_));
  Table fresh(table.config_, table.signature_, 0);
  fresh.extensions_ = table.extensions_;
  fresh.store_ = table.store_;
  place_items(items, head, changed.empty(), fresh);
  if (from.blobs().size() != static_cast<std::size_t>(head.chunks_size()))
    file.fail("is damaged: it has " + std::to_string(from.blobs().size()) + " blobs of "
              + std::to_string(head.chunks_size()) + " chunks");
  std::vector<Stored> stored;
  for (const wire::SavedChunk& chunk : head.chunks())
    stored.push_back({&from, &file, {chunk.number(), chunk.low(), chunk.high()}});
  load_chunks(stored, head, fresh);
  load_counters(head, fresh);
  if (!changed.empty()) // counters of another limiter mean nothing
    keep_to_limits(fresh);
  table = std::move(fresh);
  return changed;
}

std::string Table::load(const std::filesystem::path& folder, ConfigChange change) {
  return TableLoader::load(*this, folder, change);
}

} // namespace troupe::replay
