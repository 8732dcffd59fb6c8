// A table as blocks (blocks.hpp): the head, and what SavedTable in replay.proto says follows it.
#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "replay/replay.pb.h"
#include "replay/table.hpp"
#include "replay/table_checkpoint.hpp"
#include "replay/table_config_wire.hpp"

namespace troupe::replay {

/// Reaches into a Table to write it down.
struct TableSaver {
  static wire::SavedTable head(const Table& table) {
    wire::SavedTable head;
    put(table.signature_, *head.mutable_signature());
    for (std::size_t i = 1; i < table.shapes_.size(); ++i)
      put(*table.shapes_[i], *head.add_shapes());
    put(table.config_, *head.mutable_config());
    for (const std::uint64_t word : table.random_.state)
      head.add_random(word);
    head.set_items(static_cast<std::uint64_t>(table.size()));
    head.set_end(table.end_);
    head.set_sampled(table.sampled_);
    head.set_dropped_duplicates(table.dropped_duplicates_);
    head.set_limiter_inserted(table.limiter_.inserted());
    head.set_limiter_sampled(table.limiter_.sampled());
    head.set_insertions(table.insertions_);
    head.set_greatest_priority(table.greatest_priority_);
    head.set_updated_priorities(table.updated_priorities_);
    head.set_late_priorities(table.late_priorities_);
    head.set_next_chunk(table.next_chunk_);
    head.set_on_disk(table.store_ != nullptr);
    std::vector<std::uint64_t> ids; // sorted: the same table gives the same file
    for (const auto& [id, sequences] : table.writers_)
      ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    for (const std::uint64_t id : ids) {
      const Table::Sequences& sequences = table.writers_.at(id);
      wire::SavedWriter& saved = *head.add_writers();
      saved.set_writer(id);
      saved.set_newest(sequences.newest);
      saved.set_seen(sequences.seen);
      saved.set_used(sequences.used);
    }
    return head;
  }

  /// The chunks in the order in which the items at these places come to them, and where in it each
  /// of table.held_ lies: the same for equal tables, whatever their past.
  static std::vector<const Table::Held*> chunks_of(const Table& table,
                                                   const std::vector<std::uint32_t>& places,
                                                   std::vector<std::uint32_t>& position) {
    std::vector<const Table::Held*> chunks;
    const auto meet = [&](std::uint32_t held) {
      if (held == kNoPlace || position[held] != kNoPlace)
        return;
      position[held] = static_cast<std::uint32_t>(chunks.size());
      chunks.push_back(&table.held_[held]);
    };
    for (const std::uint32_t place : places) {
      const Table::Slot& slot = table.slots_[place];
      std::uint32_t held = slot.chunk;
      for (std::uint32_t left = table.chunks_of(slot); left > 0; --left) {
        meet(held);
        held = table.held_[held].next;
      }
    }
    return chunks;
  }

  /// A value of each item.
  template <class Value>
  static std::vector<std::byte> values(std::uint64_t items, Value&& value) {
    using One = std::decay_t<decltype(value(std::size_t{}))>;
    std::vector<std::byte> bytes(items * sizeof(One));
    for (std::uint64_t i = 0; i < items; ++i) {
      const One one = value(i);
      std::memcpy(bytes.data() + i * sizeof one, &one, sizeof one);
    }
    return bytes;
  }

  static void add_order(TableSnapshot& made, const Selector* selector,
                        const std::vector<std::uint32_t>& at_place) {
    if (selector == nullptr)
      return;
    std::vector<std::uint32_t> order;
    selector->order(order);
    made.header.push_back(values(order.size(), [&](std::size_t i) { return at_place[order[i]]; }));
  }

  static TableSnapshot snapshot(const Table& table) {
    TableSnapshot made;
    made.compression = table.config_.compression;
    wire::SavedTable head = TableSaver::head(table);
    const std::vector<std::uint32_t> all = table.places_by_key();
    const std::uint64_t items = all.size();
    const auto key = [&](std::size_t i) { return table.key_at(all[i]); };
    head.set_first_key(all.empty() ? table.end_ : key(0));
    std::vector<std::uint32_t> position(table.held_.size(), kNoPlace); // in the file
    for (const Table::Held* held : chunks_of(table, all, position)) {
      wire::SavedChunk& saved = *head.add_chunks();
      saved.set_id(held->chunk->id());
      saved.set_capacity(held->chunk->capacity());
      saved.set_low(held->low);
      saved.set_high(held->high);
      saved.set_number(held->number);
      if (held->next != kNoPlace && position[held->next] != kNoPlace)
        saved.set_next(1 + position[held->next]);
      made.chunks.push_back({{held->number, held->low, held->high}, held->chunk});
    }
    const std::string bytes = head.SerializeAsString();
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    made.header.emplace_back(first, first + bytes.size());
    made.header.push_back(values(items, [&](std::size_t i) {
      Table::Slot slot = table.slots_[all[i]];
      slot.chunk = position[slot.chunk];
      return slot;
    }));
    made.header.push_back(values(items, [&](std::size_t i) { return table.times_[all[i]]; }));
    if (table.keeps_priorities())
      made.header.push_back(
          values(items, [&](std::size_t i) { return table.priorities_[all[i]]; }));
    if (!table.is_ring())
      made.header.push_back(
          values(items, [&](std::size_t i) { return i == 0 ? 0 : key(i) - key(i - 1); }));
    std::vector<std::uint32_t> at_place(table.slots_.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      at_place[all[i]] = static_cast<std::uint32_t>(i);
    add_order(made, table.sampler_.get(), at_place);
    add_order(made, table.remover_.get(), at_place);
    return made;
  }
};

TableSnapshot Table::snapshot() const {
  return TableSaver::snapshot(*this);
}

} // namespace troupe::replay
