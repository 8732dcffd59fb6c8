// Reads what table_file.cpp writes, and believes none of it.
#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "replay/block_file.hpp"
#include "replay/replay.pb.h"
#include "replay/table.hpp"
#include "replay/table_config_wire.hpp"
#include "replay/table_file.hpp"

namespace troupe::replay {

namespace {
constexpr std::uint64_t kMaxHeadBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{2} << 30;
} // namespace

/// Reaches into a Table to build it again.
struct TableLoader {
  static std::size_t row_bytes(const Chunk& chunk) { return chunk.layout().row_bytes; }

  template <class Value, class Take>
  static void read(BlockReader& file, std::uint64_t items, Take&& take) {
    std::vector<Value> block;
    for (std::uint64_t i = 0; i < items;) {
      block.resize(std::min(kItemsPerBlock, items - i));
      file.block(block.data(), block.size() * sizeof(Value));
      for (const Value& value : block)
        take(i++, value);
    }
  }

  static wire::SavedTable load_head(BlockReader& file) {
    char magic[sizeof kTableMagic];
    std::uint64_t version = 0;
    file.raw(magic, sizeof magic);
    if (std::memcmp(magic, kTableMagic, sizeof magic) != 0)
      file.fail("is not a replay table");
    file.raw(&version, sizeof version);
    if (version != kTableVersion)
      throw std::runtime_error(
          file.path() + " has version " + std::to_string(version)
          + " of the format and this program reads " + std::to_string(kTableVersion)
          + (version < kTableVersion
                 ? ": it was saved by an earlier program, which can still read it"
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
  static std::string compare(const BlockReader& file, const wire::SavedTable& head,
                             const Table& table, Table::ConfigChange change) {
    if (const std::string why =
            replay::difference(table.signature_, signature_of(head.signature()));
        !why.empty())
      file.fail("holds other steps or items: " + why + "; resume with the former ones");
    const RowLayout layout(table.signature_);
    const TableConfig config = config_of(head.config());
    const std::string changed = difference(config, table.config_);
    if (!changed.empty() && change == Table::ConfigChange::refuse)
      throw std::runtime_error(file.path() + " was saved with another configuration: " + changed
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
    if (head.items() > static_cast<std::uint64_t>(std::max<std::int64_t>(0, config.max_items))
        || (ring && head.items() > 1 && config.compression == Compression::none
            && bytes
                   > 2 * largest
                         + static_cast<std::uint64_t>(std::max<std::int64_t>(0, config.max_bytes))))
      file.fail("is damaged: it holds more than its limits");
    return changed;
  }

  /// What the file says of each item, by key.
  struct Items {
    std::vector<ShapePtr> shapes{nullptr};
    std::vector<Table::Slot> slots;
    std::vector<std::uint32_t> times;
    std::vector<double> priorities;
    std::vector<std::uint64_t> keys;
    std::vector<std::uint32_t> sampler, remover; // orders
  };

  static Items load_items(BlockReader& file, const wire::SavedTable& head, const Table& saved) {
    const std::uint64_t count = head.items();
    Items items;
    items.slots.reserve(count);
    for (const wire::Shape& shape : head.shapes()) {
      items.shapes.push_back(shape_of(shape));
      if (!fits(*items.shapes.back(), saved.signature_.columns.size(), kNoPlace))
        file.fail("is damaged: a shape of items makes no sense");
    }
    read<Table::Slot>(file, count, [&](std::uint64_t, const Table::Slot& slot) {
      items.slots.push_back(check_slot(file, head, items, slot));
    });
    read<std::uint32_t>(file, count, [&](auto, std::uint32_t n) { items.times.push_back(n); });
    if (saved.keeps_priorities())
      read<double>(file, count, [&](auto, double priority) {
        if (!valid_priority(priority))
          file.fail("is damaged: a priority makes no sense");
        items.priorities.push_back(priority);
      });
    std::uint64_t key = head.first_key();
    if (saved.is_ring())
      for (std::uint64_t i = 0; i < count; ++i)
        items.keys.push_back(key++);
    else
      read<std::uint64_t>(file, count, [&](std::uint64_t i, std::uint64_t distance) {
        if ((i == 0) != (distance == 0) || distance >= head.end() - key)
          file.fail("is damaged: the keys make no sense");
        items.keys.push_back(key += distance);
      });
    if (count > 0 && items.keys.back() >= head.end())
      file.fail("is damaged: the keys make no sense");
    if (saved.sampler_)
      items.sampler = load_order(file, count);
    if (saved.remover_)
      items.remover = load_order(file, count);
    return items;
  }

  static std::vector<std::uint32_t> load_order(BlockReader& file, std::uint64_t count) {
    std::vector<std::uint32_t> order;
    std::vector<bool> seen(count);
    read<std::uint32_t>(file, count, [&](auto, std::uint32_t place) {
      if (place >= count || seen[place])
        file.fail("is damaged: an order of items makes no sense");
      seen[place] = true;
      order.push_back(place);
    });
    return order;
  }

  /// The items into an empty table; of one in a ring the keys follow one another.
  static void place_items(const Items& items, const wire::SavedTable& head, bool same,
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
  static const Table::Slot& check_slot(const BlockReader& file, const wire::SavedTable& head,
                                       const Items& items, const Table::Slot& slot) {
    const auto chunks = static_cast<std::uint32_t>(head.chunks_size());
    bool fine = slot.chunk < chunks && slot.rows >= 1 && slot.history < slot.rows
                && slot.shape < items.shapes.size()
                && (slot.shape == 0
                    || fits(*items.shapes[slot.shape], items.shapes[slot.shape]->columns.size(),
                            slot.rows));
    const std::uint32_t capacity = fine ? head.chunks(static_cast<int>(slot.chunk)).capacity() : 1;
    std::uint64_t left = std::uint64_t{slot.begin} + slot.rows; // in this chunk and those after it
    std::uint32_t low = slot.begin;
    for (std::uint32_t at = slot.chunk; fine; low = 0) {
      const wire::SavedChunk& chunk = head.chunks(static_cast<int>(at));
      const std::uint64_t end = std::min<std::uint64_t>(left, capacity);
      fine = chunk.capacity() == capacity && low >= chunk.low() && low < capacity
             && end <= chunk.high();
      left -= end;
      if (left == 0)
        break;
      fine = fine && chunk.next() > 0;
      at = chunk.next() - 1;
    }
    if (!fine)
      file.fail("is damaged: an item lies outside its chunks");
    return slot;
  }

  static void load_chunks(BlockReader& file, const wire::SavedTable& head, Table& table) {
    const auto layout = std::make_shared<const RowLayout>(table.signature_);
    for (const wire::SavedChunk& saved : head.chunks()) {
      auto raw = std::make_shared<Chunk>(layout, saved.id(), saved.capacity());
      const std::uint32_t rows = saved.high() - saved.low();
      file.block(raw->row(saved.low()), rows * row_bytes(*raw));
      file.block(raw->flags() + saved.low(), rows);
      // At once: as they were they might not fit into memory.
      const bool encode = table.config_.compression != Compression::none;
      const ChunkPtr chunk =
          encode ? table.encode(*raw, saved.low(), saved.high()) : std::move(raw);
      table.encoded_chunks_ += encode ? 1 : 0;
      table.held_of_[chunk.get()] = static_cast<std::uint32_t>(table.held_.size());
      table.bytes_ += static_cast<std::int64_t>(chunk->bytes());
      table.held_.push_back({chunk, 0, saved.low(), saved.high(), kNoPlace, kNoPlace});
    }
    link_chunks(file, head, table);
    for (const std::uint32_t place : table.places_by_key()) {
      const Table::Slot& slot = table.slots_[place];
      std::uint32_t at = slot.chunk;
      for (std::uint32_t left = table.chunks_of(slot); left > 0; --left) {
        ++table.held_[at].items;
        at = table.held_[at].next;
      }
    }
    for (const Table::Held& held : table.held_)
      if (held.items == 0)
        file.fail("is damaged: no item refers to one of its chunks");
    file.end();
  }

  static void link_chunks(const BlockReader& file, const wire::SavedTable& head, Table& table) {
    for (int i = 0; i < head.chunks_size(); ++i) {
      if (head.chunks(i).next() == 0)
        continue;
      const std::uint32_t next = head.chunks(i).next() - 1;
      if (table.held_[next].previous != kNoPlace || next == static_cast<std::uint32_t>(i))
        file.fail("is damaged: two chunks go on in one");
      table.held_[static_cast<std::size_t>(i)].next = next;
      table.held_[next].previous = static_cast<std::uint32_t>(i);
    }
  }

  static void load_counters(const wire::SavedTable& head, Table& table) {
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
  static Table saved_table(const BlockReader& file, const wire::SavedTable& head,
                           const Signature& signature) {
    try {
      return Table(config_of(head.config()), signature, 0);
    } catch (const std::invalid_argument& e) {
      file.fail("is damaged: " + std::string(e.what()));
    }
  }

  static std::string load(Table& table, const std::string& path, Table::ConfigChange change) {
    BlockReader file(path);
    const wire::SavedTable head = load_head(file);
    const std::string changed = compare(file, head, table, change);
    const Items items = load_items(file, head, saved_table(file, head, table.signature_));
    Table fresh(table.config_, table.signature_, 0);
    fresh.extensions_ = table.extensions_;
    place_items(items, head, changed.empty(), fresh);
    load_chunks(file, head, fresh);
    load_counters(head, fresh);
    if (!changed.empty()) { // counters of another limiter mean nothing
      if (fresh.config_.max_times_sampled > 0)
        for (const std::uint32_t place : fresh.places_by_key())
          if (fresh.times_[place] >= fresh.config_.max_times_sampled)
            fresh.remove(place);
      fresh.remove_above_limits(0);
      fresh.limiter_.reconfigure(fresh.config_.limiter, fresh.size());
    }
    table = std::move(fresh);
    return changed;
  }
};

std::string Table::load(const std::string& path, ConfigChange change) {
  return TableLoader::load(*this, path, change);
}

} // namespace troupe::replay
