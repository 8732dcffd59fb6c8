#include "replay/service/insertion_decoder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "replay/chunks/remembered.hpp"
#include "replay/service/wire_format.hpp"
#include "replay/table/selector.hpp"

namespace troupe::replay {

namespace {

using env::wire::Frame;

constexpr std::size_t kChunksPerWriter = 4; // besides the chunks of its longest item

} // namespace

/// The changes that a message will make, collected before any of them is made.
struct InsertionDecoder::Plan {
  struct Planned {
    std::shared_ptr<Chunk> chunk; // null: still to be allocated
    std::uint32_t capacity = 0;
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    bool named = false; // the message contains rows of it
  };

  std::unordered_map<std::uint64_t, Planned> chunks; // by id
  std::vector<ReceivedShape> shapes;
  std::vector<ItemRecord> records;
  std::size_t longest = 0; // chunks of the longest item
  std::size_t opened = 0;  // bytes of new chunks
  bool missing = false;
  bool starts_over = false; // the chunks known before are not used again

  /// True if the message contains rows of a known chunk that neither overlap nor continue the rows
  /// that are present.
  bool has_gap(const wire::Insert& header) const {
    return std::any_of(header.rows().begin(), header.rows().end(), [this](const wire::Rows& rows) {
      const auto at = chunks.find(rows.chunk());
      return at != chunks.end()
             && (rows.first() > at->second.high
                 || std::uint64_t{rows.first()} + rows.count() < at->second.low);
    });
  }
};

InsertionDecoder::InsertionDecoder(const Signature& signature, const Limits& limits)
    : layout_(std::make_shared<const RowLayout>(signature)), limits_(limits) {}

std::size_t InsertionDecoder::held_bytes(const Writer& writer) {
  std::size_t sum = 0;
  for (const Known& known : writer.chunks)
    if (known.chunk.use_count() == 1)
      sum += known.chunk->bytes();
  for (const ChunkPtr& chunk : writer.closed)
    if (chunk.use_count() == 1)
      sum += chunk->bytes();
  return sum;
}

std::size_t InsertionDecoder::held_bytes() const {
  std::size_t sum = 0;
  for (const auto& [id, writer] : writers_)
    sum += held_bytes(writer);
  return sum;
}

/// Counts the held bytes only when they may exceed the limit, and then forgets writers until at
/// most half of it is held.
void InsertionDecoder::keep_to_budget(std::size_t opened) {
  held_at_most_ += opened;
  if (held_at_most_ <= limits_.max_bytes)
    return;
  held_at_most_ = held_bytes();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> oldest; // used, writer
  for (const auto& [id, writer] : writers_)
    oldest.emplace_back(writer.used, id);
  std::sort(oldest.begin(), oldest.end());
  for (const auto& [used, id] : oldest) {
    if (held_at_most_ <= limits_.max_bytes / 2)
      return;
    held_at_most_ -= held_bytes(writers_.at(id));
    writers_.erase(id);
  }
}

InsertionDecoder::Result InsertionDecoder::decode(const wire::Insert& header,
                                                  std::span<const Frame> frames,
                                                  InsertionPtr& insertion, std::string& why) {
  const std::size_t items = frames.empty() ? 0 : frames[0].size() / sizeof(ItemRecord);
  if (frames.size() != 1 + static_cast<std::size_t>(header.rows_size()) || items == 0
      || frames[0].size() % sizeof(ItemRecord) != 0 || header.capacity() == 0
      || header.capacity() > limits_.max_chunk_bytes / layout_->row_bytes || items > kMostItems
      || header.rows_size() > kMostWireRows || header.shapes_size() > kMostShapes) {
    why = "an insertion whose parts do not match its header";
    return Result::garbage;
  }
  const auto& priorities = header.priorities();
  if ((!priorities.empty() && static_cast<std::size_t>(priorities.size()) != items)
      || !std::all_of(priorities.begin(), priorities.end(), valid_priority)) {
    why = "an insertion whose priorities are not one of 0 to 1e12 for each item";
    return Result::garbage;
  }
  Plan plan;
  if (const auto known = writers_.find(header.writer()); known != writers_.end())
    for (const Known& one : known->second.chunks)
      plan.chunks[one.chunk->id()] = {
          .chunk = one.chunk, .capacity = one.chunk->capacity(), .low = one.low, .high = one.high};
  if (plan.has_gap(header)) { // the rows in between are missing
    // A table follows an item from each chunk to the next one, so a chunk must not be replaced
    // beside a neighbour that stays. A complete message contains all rows of its items.
    plan.missing = !header.complete();
    plan.starts_over = header.complete();
    if (plan.starts_over)
      plan.chunks.clear();
  }
  if (!plan_rows(header, frames, plan, why))
    return Result::garbage;
  plan.shapes = decode_shapes(*layout_, header.shapes());
  if (plan.shapes.empty()) {
    why = "items of a shape that the columns do not have";
    return Result::garbage;
  }
  if (const Result found = plan_items(header, frames[0], plan, why); found != Result::insertion)
    return found;
  Writer& from = remember(writers_, header.writer(), limits_.max_writers, ++used_);
  insertion = apply(from, header, frames, plan);
  trim(from);
  keep_to_budget(plan.opened);
  return Result::insertion;
}

bool InsertionDecoder::plan_rows(const wire::Insert& header, std::span<const Frame> frames,
                                 Plan& plan, std::string& why) const {
  for (int i = 0; i < header.rows_size(); ++i) {
    const wire::Rows& rows = header.rows(i);
    const std::uint64_t end = std::uint64_t{rows.first()} + rows.count();
    if (rows.count() == 0 || end > header.capacity() || rows.flags().size() != rows.count()
        || frames[static_cast<std::size_t>(i) + 1].size() != rows.count() * layout_->row_bytes) {
      why = "rows that do not fit their chunk";
      return false;
    }
    const auto high = static_cast<std::uint32_t>(end);
    auto [at, added] = plan.chunks.try_emplace(rows.chunk());
    Plan::Planned& chunk = at->second;
    if (!added && chunk.capacity != header.capacity()) {
      why = "a chunk that changes its size";
      return false;
    }
    if (std::exchange(chunk.named, true)) {
      why = "rows of one chunk twice";
      return false;
    }
    if (added) {
      chunk = {.chunk = nullptr,
               .capacity = header.capacity(),
               .low = rows.first(),
               .high = high,
               .named = true};
      plan.opened += header.capacity() * (layout_->row_bytes + 1);
    }
    chunk.low = std::min(chunk.low, rows.first());
    chunk.high = std::max(chunk.high, high);
  }
  if (plan.opened <= limits_.max_bytes)
    return true;
  why = "an insertion that opens chunks of " + std::to_string(plan.opened) + " bytes, at most "
        + std::to_string(limits_.max_bytes) + " are allowed";
  return false;
}

InsertionDecoder::Result InsertionDecoder::plan_items(const wire::Insert& header,
                                                      const Frame& records, Plan& plan,
                                                      std::string& why) const {
  const std::uint32_t capacity = header.capacity();
  plan.records.resize(records.size() / sizeof(ItemRecord));
  std::memcpy(plan.records.data(), records.bytes().data(), records.size());
  std::size_t spanned = 0;
  for (const ItemRecord& record : plan.records) {
    const std::uint64_t end = std::uint64_t{record.begin} + record.rows;
    if (record.chunk >= static_cast<std::size_t>(header.chunks_size()) || record.begin >= capacity
        || record.rows < 1 || record.rows > kMostWindow || record.history >= record.rows
        || (end - 1) / capacity >= kMostWireRows || record.shape >= plan.shapes.size()
        || record.rows < plan.shapes[record.shape].window) {
      why = "an item outside its chunks";
      return Result::garbage;
    }
    const std::uint64_t count = (end - 1) / capacity + 1;
    plan.longest = std::max<std::size_t>(plan.longest, count);
    if ((spanned += count) > kMostItemChunks) {
      why = "items that span more than " + std::to_string(kMostItemChunks) + " chunks together";
      return Result::garbage;
    }
    const std::uint64_t id = header.chunks(static_cast<int>(record.chunk));
    for (std::uint64_t i = 0; i < count && !plan.missing; ++i) {
      const auto at = plan.chunks.find(id + i);
      const std::uint64_t low = i == 0 ? record.begin : 0;
      const std::uint64_t high = std::min<std::uint64_t>(end - i * capacity, capacity);
      plan.missing = at == plan.chunks.end() || at->second.capacity != capacity
                     || low < at->second.low || high > at->second.high;
    }
  }
  if (!plan.missing)
    return Result::insertion;
  why = "a complete insertion that lacks rows of its items";
  return header.complete() ? Result::garbage : Result::missing;
}

InsertionPtr InsertionDecoder::apply(Writer& from, const wire::Insert& header,
                                     std::span<const Frame> frames, Plan& plan) const {
  // Everything that may throw comes before the first change to the rows of `from`.
  auto made = std::make_shared<Insertion>();
  made->writer_id = header.writer();
  made->sequence = header.sequence();
  made->rows.reserve(static_cast<std::size_t>(header.rows_size()));
  made->items.resize(plan.records.size());
  from.chunks.reserve(from.chunks.size() + static_cast<std::size_t>(header.rows_size()));
  from.closed.reserve(from.closed.size() + from.chunks.size());
  for (auto& [id, chunk] : plan.chunks)
    if (!chunk.chunk)
      chunk.chunk = std::make_shared<Chunk>(layout_, id, chunk.capacity);
  for (std::size_t i = 0; i < plan.records.size(); ++i) {
    const ItemRecord& record = plan.records[i];
    Item& item = made->items[i];
    item.key = header.first_key() + i;
    const std::uint64_t id = header.chunks(static_cast<int>(record.chunk));
    const std::uint32_t last = (record.begin + record.rows - 1) / header.capacity();
    item.chunks.resize(last + 1);
    for (std::uint32_t k = 0; k <= last; ++k)
      item.chunks.set(k, plan.chunks.at(id + k).chunk);
    item.begin = record.begin;
    item.rows = record.rows;
    item.history = record.history;
    item.shape = plan.shapes[record.shape].shape;
    if (!header.priorities().empty())
      item.priority = header.priorities(static_cast<int>(i));
  }
  if (plan.starts_over) { // earlier items keep the old chunks
    for (Known& one : from.chunks)
      from.closed.push_back(std::move(one.chunk));
    from.chunks.clear();
  }
  for (int i = 0; i < header.rows_size(); ++i) {
    const wire::Rows& rows = header.rows(i);
    const std::shared_ptr<Chunk>& chunk = plan.chunks.at(rows.chunk()).chunk;
    auto known = std::find_if(from.chunks.begin(), from.chunks.end(),
                              [&](const Known& one) { return one.chunk->id() == rows.chunk(); });
    if (known == from.chunks.end())
      known = from.chunks.insert(known, {chunk, rows.first(), rows.first()});
    // Other threads may be reading the rows that are already present, so only new rows are written.
    const auto write = [&](std::uint32_t begin, std::uint32_t end) {
      if (begin >= end)
        return;
      const std::size_t skip = begin - rows.first();
      std::memcpy(chunk->row(begin),
                  frames[static_cast<std::size_t>(i) + 1].bytes().data()
                      + skip * layout_->row_bytes,
                  (end - begin) * layout_->row_bytes);
      std::memcpy(chunk->flags() + begin, rows.flags().data() + skip, end - begin);
    };
    const std::uint32_t end = rows.first() + rows.count();
    write(rows.first(), std::min(known->low, end));
    write(std::max(rows.first(), known->high), end);
    known->low = std::min(known->low, rows.first());
    known->high = std::max(known->high, end);
    made->rows.push_back({chunk, rows.first(), rows.count()});
  }
  from.keep = std::max(from.keep, plan.longest);
  // Chunks that this insertion closes are reported with the next one.
  made->closed = std::exchange(from.closed, {});
  return made;
}

/// Closes the oldest chunks of a writer that has too many.
void InsertionDecoder::trim(Writer& writer) const {
  const std::size_t keep = kChunksPerWriter + writer.keep;
  if (writer.chunks.size() <= keep)
    return;
  std::sort(writer.chunks.begin(), writer.chunks.end(),
            [](const Known& a, const Known& b) { return a.chunk->id() < b.chunk->id(); });
  const auto kept = writer.chunks.end() - static_cast<std::ptrdiff_t>(keep);
  for (auto at = writer.chunks.begin(); at != kept; ++at)
    writer.closed.push_back(std::move(at->chunk));
  writer.chunks.erase(writer.chunks.begin(), kept);
}

} // namespace troupe::replay
