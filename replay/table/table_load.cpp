#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "replay/table/table_config_wire.hpp"
#include "replay/table/table_loader.hpp"

namespace troupe::replay {

namespace {

constexpr std::uint64_t kMaxHeadBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxLoadedChunkBytes = std::uint64_t{2} << 30;
constexpr std::uint64_t kMaxLoadedItems = std::uint64_t{1} << 31;
constexpr std::uint64_t kMaxCounted = std::uint64_t{1} << 53; // a loaded table counts on from it

/// Reads one value for each item.
template <class Value>
std::vector<Value> read_values(BlockReader& file, std::uint64_t items) {
  if (items > kMaxLoadedItems)
    file.fail("is damaged: it claims " + std::to_string(items) + " items");
  return file.values<Value>(items);
}

bool counters_make_sense(const wire::SavedTable& head) {
  const std::int64_t counters[] = {
      head.sampled(),         head.dropped_duplicates(), head.limiter_inserted(),
      head.limiter_sampled(), head.updated_priorities(), head.late_priorities()};
  return std::max({head.end(), head.insertions(), head.next_chunk()}) <= kMaxCounted
         && std::all_of(std::begin(counters), std::end(counters), [](std::int64_t counter) {
              return counter >= 0 && static_cast<std::uint64_t>(counter) <= kMaxCounted;
            });
}

wire::SavedTable load_head(BlockReader& file) {
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
  if (!head.ParseFromString(bytes) || head.random_size() != 4 || !counters_make_sense(head)
      || head.items() > head.end() - std::min(head.end(), head.first_key())
      || !valid_priority(head.greatest_priority()))
    file.fail("is damaged: its head makes no sense");
  return head;
}

/// False if the chunk has room for many more rows than the checkpoint contains. That is valid,
/// since its writer may have chosen large chunks and just begun one. It then stays encoded, so that
/// a damaged capacity allocates nothing.
bool is_well_filled(const wire::SavedChunk& chunk, std::size_t row_bytes) {
  // Writers give a chunk this many bytes by default, or this many rows if they are larger.
  constexpr std::uint64_t kRoomBytes = std::uint64_t{1} << 20;
  constexpr std::uint64_t kRoomRows = 16;
  const std::uint64_t rows = chunk.high() - chunk.low();
  return chunk.capacity() * row_bytes <= std::max(kRoomBytes, kRoomRows * rows * row_bytes);
}

/// Throws if the signature differs, if the configuration differs (unless that is accepted), or if
/// the table needs more memory than the configuration allows. Returns how the configurations
/// differ.
std::string compare(const BlockReader& file, const wire::SavedTable& head, const TableState& into,
                    bool accept_other_config) {
  if (const std::string why = replay::difference(into.signature, signature_of(head.signature()));
      !why.empty())
    file.fail("holds different steps or items: " + why + "; resume with the previous ones");
  const RowLayout layout(into.signature);
  const TableConfig config = config_of(head.config());
  const std::string changed = difference(config, into.config);
  if (!changed.empty() && !accept_other_config)
    throw std::runtime_error(file.source() + " was saved with another configuration: " + changed
                             + "; resume with the previous values, or accept the change");
  std::uint64_t bytes = 0;
  std::uint64_t filled = 0; // of chunks that are not kept encoded
  std::uint64_t largest = 0;
  for (const wire::SavedChunk& chunk : head.chunks()) {
    const std::uint64_t size = chunk.capacity() * layout.row_bytes;
    if (size > kMaxLoadedChunkBytes || chunk.low() >= chunk.high()
        || chunk.high() > chunk.capacity()
        || chunk.next() > static_cast<std::uint64_t>(head.chunks_size()))
      file.fail("is damaged: a chunk makes no sense");
    bytes += size;
    filled += is_well_filled(chunk, layout.row_bytes) ? size : 0;
    largest = std::max(largest, size);
  }
  // The newest item stays whatever its size. Other removers do not bound the bytes this way.
  const bool ring = config.remover.kind == SelectorKind::fifo && config.max_times_sampled == 0;
  const auto room = static_cast<std::uint64_t>(std::max<std::int64_t>(0, config.max_bytes));
  const bool too_much = ring && head.items() > 1 && config.compression == Compression::none
                        && filled > 2 * largest + room;
  const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(0, config.max_items));
  if ((head.items() > most && !is_queue(config.limiter.kind)) || (too_much && !head.on_disk()))
    file.fail("is damaged: it holds more than its limits");
  if (head.on_disk() && !into.chunks.store()
      && bytes > static_cast<std::uint64_t>(into.config.max_bytes))
    throw std::runtime_error(file.source() + " holds " + std::to_string(bytes)
                             + " bytes of steps, some of them on disk, and replay.max_bytes is "
                             + std::to_string(into.config.max_bytes)
                             + ": raise it, or give the table a folder to spill to");
  return changed;
}

/// Returns an empty TableItems with the saved configuration, which determines what the file
/// contains.
TableItems items_as_saved(const BlockReader& file, const wire::SavedTable& head) {
  try {
    const TableConfig config = config_of(head.config());
    check(config);
    return TableItems(config);
  } catch (const std::invalid_argument& e) {
    file.fail("is damaged: " + std::string(e.what()));
  }
}

std::vector<ShapePtr> load_shapes(const BlockReader& file, const wire::SavedTable& head,
                                  std::size_t columns) {
  std::vector<ShapePtr> shapes{nullptr};
  for (const wire::Shape& shape : head.shapes()) {
    shapes.push_back(shape.columns().empty() ? nullptr : shape_of(shape));
    if (shapes.back() && !fits(*shapes.back(), columns, ~0U))
      file.fail("is damaged: a shape of items makes no sense");
  }
  return shapes;
}

/// Checks that each chunk of the window follows the previous one and contains all rows of the
/// window.
void check_window(const BlockReader& file, const wire::SavedTable& head,
                  const std::vector<ShapePtr>& shapes, const ItemWindow& window) {
  const auto chunks = static_cast<std::uint32_t>(head.chunks_size());
  bool fine =
      window.chunk < chunks && window.rows >= 1 && window.rows <= kMostWindow
      && window.history < window.rows && window.shape < shapes.size()
      && (window.shape == 0
          || (shapes[window.shape]
              && fits(*shapes[window.shape], shapes[window.shape]->columns.size(), window.rows)));
  const std::uint32_t capacity = fine ? head.chunks(static_cast<int>(window.chunk)).capacity() : 1;
  // Rows in this chunk and the following ones
  std::uint64_t left = std::uint64_t{window.begin} + window.rows;
  std::uint32_t low = window.begin;
  for (std::uint32_t at = window.chunk; fine; low = 0) {
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
    file.fail("is damaged: an item is outside its chunks");
}

std::vector<std::uint32_t> load_order(BlockReader& file, std::uint64_t count) {
  std::vector<std::uint32_t> order = read_values<std::uint32_t>(file, count);
  std::vector<bool> seen(count);
  for (const std::uint32_t place : order) {
    if (place >= count || seen[place])
      file.fail("is damaged: an order of items makes no sense");
    seen[place] = true;
  }
  return order;
}

SavedItems load_items(BlockReader& file, const wire::SavedTable& head,
                      const std::vector<ShapePtr>& shapes) {
  const TableItems saved = items_as_saved(file, head);
  const std::uint64_t count = head.items();
  SavedItems items;
  items.windows = read_values<ItemWindow>(file, count);
  for (const ItemWindow& window : items.windows)
    check_window(file, head, shapes, window);
  items.times = read_values<std::uint32_t>(file, count);
  if (saved.keeps_priorities()) {
    items.priorities = read_values<double>(file, count);
    if (!std::all_of(items.priorities.begin(), items.priorities.end(), valid_priority))
      file.fail("is damaged: a priority makes no sense");
  }
  std::uint64_t key = head.first_key();
  if (saved.is_ring())
    for (std::uint64_t i = 0; i < count; ++i)
      items.keys.push_back(key++);
  else
    for (const std::uint64_t distance : read_values<std::uint64_t>(file, count)) {
      if (items.keys.empty() != (distance == 0) || distance >= head.end() - key)
        file.fail("is damaged: the keys make no sense");
      items.keys.push_back(key += distance);
    }
  if (count > 0 && items.keys.back() >= head.end())
    file.fail("is damaged: the keys make no sense");
  if (saved.sampler() != nullptr)
    items.sampler = load_order(file, count);
  if (saved.remover() != nullptr)
    items.remover = load_order(file, count);
  file.end();
  return items;
}

ChunkPtr read_chunk(const CheckpointReader& from, const CheckpointBlob& blob,
                    const ChunkRange& range, ChunkEncoder* decoder) {
  std::vector<std::byte> bytes(blob.place.size);
  from.read(blob, bytes);
  auto encoded = std::make_shared<const Chunk>(range, bytes);
  return decoder ? ChunkPtr(decoder->decode(*encoded, range.low, range.high)) : encoded;
}

/// The blobs of the loaded checkpoints in a store. At the end it releases the blobs that were not
/// taken, also if loading fails.
class AdoptedBlobs {
public:
  AdoptedBlobs(std::shared_ptr<SegmentStore> store, std::span<const StoredChunk> stored)
      : store_(std::move(store)) {
    for (const StoredChunk& chunk : stored)
      if (!left_.contains(chunk.saved)) {
        const std::vector<BlobRef> refs = store_->adopt(chunk.saved->from);
        left_[chunk.saved].assign(refs.begin(), refs.end());
      }
  }
  ~AdoptedBlobs() {
    for (const auto& [saved, refs] : left_)
      for (const std::optional<BlobRef>& ref : refs)
        if (ref)
          store_->release(*ref);
  }
  AdoptedBlobs(const AdoptedBlobs&) = delete;
  AdoptedBlobs& operator=(const AdoptedBlobs&) = delete;

  /// Returns a blob, once. The caller must release it.
  BlobRef take(const SavedTable* saved, const CheckpointBlob* blob) {
    const auto index = static_cast<std::size_t>(blob - saved->from.blobs().data());
    return std::exchange(left_.at(saved)[index], std::nullopt).value();
  }

private:
  std::shared_ptr<SegmentStore> store_;
  std::map<const SavedTable*, std::vector<std::optional<BlobRef>>> left_; // as saved->from.blobs()
};

/// Reads the newest chunks into memory, up to max_bytes. With a store the other chunks stay on
/// disk.
std::vector<TableChunks::Held> load_chunks(const TableState& into,
                                           std::span<const StoredChunk> stored,
                                           std::uint64_t next_number) {
  const auto layout = std::make_shared<const RowLayout>(into.signature);
  const std::shared_ptr<SegmentStore>& store = into.chunks.store();
  std::optional<AdoptedBlobs> adopted;
  if (store)
    adopted.emplace(store, stored);
  const bool decodes = into.config.compression == Compression::none;
  ChunkEncoder decoder(into.config.compression);
  std::vector<TableChunks::Held> held(stored.size());
  std::set<const CheckpointBlob*> used;
  std::size_t bytes = 0;
  for (std::size_t i = stored.size(); i-- > 0;) {
    const wire::SavedChunk& saved = stored[i].chunk;
    const CheckpointReader& from = stored[i].saved->from;
    const BlockReader& file = stored[i].saved->file;
    const CheckpointBlob* blob = from.find(stored[i].key);
    if (blob == nullptr || saved.number() >= next_number)
      file.fail("is damaged: a chunk is missing");
    if (!used.insert(blob).second)
      file.fail("is damaged: two chunks share one place");
    const ChunkRange range{layout, saved.id(), saved.capacity(), saved.low(), saved.high()};
    ChunkPtr chunk;
    const std::size_t older = i * sizeof(Chunk); // needed even if all older chunks stay on disk
    if (adopted && bytes + older >= static_cast<std::size_t>(into.config.max_bytes))
      chunk = std::make_shared<const Chunk>(range, store, adopted->take(stored[i].saved, blob));
    else
      chunk = read_chunk(from, *blob, range,
                         decodes && is_well_filled(saved, layout->row_bytes) ? &decoder : nullptr);
    bytes += chunk->bytes();
    held[i].chunk = std::move(chunk);
    held[i].low = saved.low();
    held[i].high = saved.high();
    held[i].number = saved.number();
    held[i].closed = true;
  }
  for (std::uint32_t i = 0; i < held.size(); ++i)
    if (const std::uint32_t next = stored[i].chunk.next(); next != 0) {
      if (next - 1 == i)
        stored[i].saved->file.fail("is damaged: a chunk continues in itself");
      held[i].next = next - 1;
      held[next - 1].previous = i;
    }
  return held;
}

void load_counters(const wire::SavedTable& head, TableState& table) {
  std::copy(head.random().begin(), head.random().end(), table.random.state.begin());
  table.sampled = head.sampled();
  table.dropped_duplicates = head.dropped_duplicates();
  table.limiter.restore(head.limiter_inserted(), head.limiter_sampled());
  table.greatest_priority = head.greatest_priority();
  table.updated_priorities = head.updated_priorities();
  table.late_priorities = head.late_priorities();
  table.writers.restore(head.insertions());
  for (const wire::SavedWriter& saved : head.writers())
    table.writers.restore(saved.writer(), {saved.newest(), saved.seen(), saved.used()});
}

} // namespace

SavedTable::SavedTable(const std::filesystem::path& folder, const TableState& into,
                       bool accept_other_config)
    : from(folder),
      file(from.header(), folder.string()),
      head(load_head(file)),
      difference(compare(file, head, into, accept_other_config)),
      shapes(load_shapes(file, head, into.signature.columns.size())),
      items(load_items(file, head, shapes)) {}

TableState build_table(const TableState& into, const wire::SavedTable& head, SavedItems items,
                       const std::vector<ShapePtr>& shapes, std::span<const StoredChunk> chunks,
                       bool same_selectors) {
  TableState made(into.config, into.signature, 0);
  const std::vector<std::uint32_t> numbers = made.shapes.restore(shapes);
  std::vector<TableChunks::Held> held = load_chunks(into, chunks, head.next_chunk());
  for (ItemWindow& window : items.windows) {
    window.shape = numbers[window.shape];
    if (window.shape != 0)
      made.shapes.use_number(window.shape);
    std::uint32_t at = window.chunk;
    for (std::uint32_t left = window.begin + window.rows;;) {
      ++held[at].items;
      const std::uint32_t capacity = held[at].chunk->capacity();
      if (left <= capacity)
        break;
      left -= capacity;
      at = held[at].next;
    }
  }
  made.shapes.free_unused();
  for (std::size_t i = 0; i < held.size(); ++i)
    if (held[i].items == 0)
      chunks[i].saved->file.fail("is damaged: no item refers to one of its chunks");
  made.items.restore(items, head.end(), same_selectors);
  made.chunks.spill_to(into.chunks.store());
  made.chunks.restore(std::move(held), head.next_chunk());
  load_counters(head, made);
  return made;
}

LoadedTable load_table(const TableState& into, const std::filesystem::path& folder,
                       bool accept_other_config) {
  SavedTable saved(folder, into, accept_other_config);
  if (saved.from.blobs().size() != static_cast<std::size_t>(saved.head.chunks_size()))
    saved.file.fail("is damaged: it has " + std::to_string(saved.from.blobs().size()) + " blobs of "
                    + std::to_string(saved.head.chunks_size()) + " chunks");
  std::vector<StoredChunk> stored;
  for (const wire::SavedChunk& chunk : saved.head.chunks())
    stored.push_back({chunk, &saved, {chunk.number(), chunk.low(), chunk.high()}});
  return {build_table(into, saved.head, std::move(saved.items), saved.shapes, stored,
                      saved.difference.empty()),
          saved.difference};
}

} // namespace troupe::replay
