#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "replay/table/table_config_wire.hpp"
#include "replay/table/table_loader.hpp"

namespace troupe::replay {

namespace {

constexpr std::uint32_t kUnsaved = 0xffffffffU;

wire::SavedTable head_of(const TableState& table) {
  wire::SavedTable head;
  put(table.signature, *head.mutable_signature());
  for (std::uint32_t i = 1; i < table.shapes.numbers(); ++i) {
    wire::Shape& saved = *head.add_shapes(); // a shape without columns: a free number
    if (table.shapes[i])
      put(*table.shapes[i], saved);
  }
  put(table.config, *head.mutable_config());
  for (const std::uint64_t word : table.random.state)
    head.add_random(word);
  head.set_items(static_cast<std::uint64_t>(table.items.size()));
  head.set_end(table.items.next_key());
  head.set_sampled(table.sampled);
  head.set_dropped_duplicates(table.dropped_duplicates);
  head.set_limiter_inserted(table.limiter.inserted());
  head.set_limiter_sampled(table.limiter.sampled());
  head.set_insertions(table.writers.insertions());
  head.set_greatest_priority(table.greatest_priority);
  head.set_updated_priorities(table.updated_priorities);
  head.set_late_priorities(table.late_priorities);
  head.set_next_chunk(table.chunks.next_number());
  head.set_on_disk(table.chunks.store() != nullptr);
  std::vector<std::uint64_t> ids; // sorted, so that equal tables give equal files
  for (const auto& [id, seen] : table.writers.writers())
    ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const std::uint64_t id : ids) {
    const WriterSequences::Seen& seen = table.writers.writers().at(id);
    wire::SavedWriter& saved = *head.add_writers();
    saved.set_writer(id);
    saved.set_newest(seen.newest);
    saved.set_seen(seen.mask);
    saved.set_used(seen.used);
  }
  return head;
}

/// Returns one value for each item, as bytes.
template <class Value>
std::vector<std::byte> bytes_of(std::size_t items, Value&& value) {
  using One = std::decay_t<decltype(value(std::size_t{}))>;
  std::vector<std::byte> bytes(items * sizeof(One));
  for (std::size_t i = 0; i < items; ++i) {
    const One one = value(i);
    std::memcpy(bytes.data() + i * sizeof one, &one, sizeof one);
  }
  return bytes;
}

} // namespace

TableSnapshot snapshot_of(const TableState& table) {
  TableSnapshot made;
  made.compression = table.config.compression;
  wire::SavedTable head = head_of(table);
  const std::vector<TableItems::Place> all = table.items.by_key();
  head.set_first_key(all.empty() ? table.items.next_key() : table.items.key_at(all[0]));
  // Chunks are saved in the order in which the items refer to them, so that equal tables give equal
  // files, whatever their history.
  const std::vector<TableChunks::Held>& held = table.chunks.held();
  std::vector<std::uint32_t> position(held.size(), kUnsaved); // position in the file
  std::vector<std::uint32_t> saved_chunks;
  for (const TableItems::Place place : all)
    table.chunks.for_each(table.items.window(place), [&](std::uint32_t index) {
      if (position[index] != kUnsaved)
        return;
      position[index] = static_cast<std::uint32_t>(saved_chunks.size());
      saved_chunks.push_back(index);
    });
  for (const std::uint32_t index : saved_chunks) {
    const TableChunks::Held& chunk = held[index];
    wire::SavedChunk& saved = *head.add_chunks();
    saved.set_id(chunk.chunk->id());
    saved.set_capacity(chunk.chunk->capacity());
    saved.set_low(chunk.low);
    saved.set_high(chunk.high);
    saved.set_number(chunk.number);
    if (chunk.next != TableChunks::kNone && position[chunk.next] != kUnsaved)
      saved.set_next(1 + position[chunk.next]);
    made.chunks.push_back({{chunk.number, chunk.low, chunk.high}, chunk.chunk});
  }
  const std::string bytes = head.SerializeAsString();
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  made.header.emplace_back(first, first + bytes.size());
  made.header.push_back(bytes_of(all.size(), [&](std::size_t i) {
    ItemWindow window = table.items.window(all[i]);
    window.chunk = position[window.chunk];
    return window;
  }));
  made.header.push_back(
      bytes_of(all.size(), [&](std::size_t i) { return table.items.times_sampled(all[i]); }));
  if (table.items.keeps_priorities())
    made.header.push_back(
        bytes_of(all.size(), [&](std::size_t i) { return table.items.priority(all[i]); }));
  if (!table.items.is_ring())
    made.header.push_back(bytes_of(all.size(), [&](std::size_t i) {
      return i == 0 ? 0 : table.items.key_at(all[i]) - table.items.key_at(all[i - 1]);
    }));
  std::vector<std::uint32_t> by_place;
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    by_place.resize(std::max<std::size_t>(by_place.size(), all[i] + std::size_t{1}));
    by_place[all[i]] = i;
  }
  for (const Selector* selector : {table.items.sampler(), table.items.remover()}) {
    if (selector == nullptr)
      continue;
    std::vector<std::uint32_t> order;
    selector->order(order);
    made.header.push_back(
        bytes_of(order.size(), [&](std::size_t i) { return by_place[order[i]]; }));
  }
  return made;
}

} // namespace troupe::replay
