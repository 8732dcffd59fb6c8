#include "replay/service/wire_format.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include "replay/chunks/remembered.hpp"
#include "replay/table/selector.hpp"
#include "replay/table/table_config_wire.hpp"

namespace troupe::replay {

namespace {

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(ItemRecord) == 20);

using env::wire::Frame;
using env::wire::Message;

constexpr std::size_t kCopyBelow = 4096;    // bytes: smaller frames are copied
constexpr std::size_t kChunksPerWriter = 4; // and an item's; rows of older ones are sent again
constexpr std::size_t kMostItems = 65536;   // in an insertion
constexpr int kMostWireRows = 512;          // chunks in an insertion
constexpr int kMostShapes = 4096;           // of an insertion's items

struct Range {
  std::shared_ptr<const Chunk> chunk;
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};

using Ranges = std::map<std::uint64_t, Range>; // by chunk id

void cover(Ranges& ranges, const std::shared_ptr<const Chunk>& chunk, std::uint32_t first,
           std::uint32_t end) {
  auto [at, added] = ranges.try_emplace(chunk->id(), Range{chunk, first, end});
  at->second.first = std::min(at->second.first, first);
  at->second.end = std::max(at->second.end, end);
}

void add_rows_to_send(const Insertion& insertion, bool complete, Ranges& ranges) {
  for (const ChunkRows& rows : insertion.rows)
    cover(ranges, rows.chunk, rows.first, rows.first + rows.count);
  if (!complete)
    return;
  for (const Item& item : insertion.items) {
    const std::uint32_t capacity = item.chunks[0]->capacity();
    std::uint32_t first = item.begin;
    std::uint32_t left = item.begin + item.rows;
    for (std::size_t i = 0; i < item.chunks.size(); ++i, first = 0, left -= capacity)
      cover(ranges, item.chunks[i], first, std::min(left, capacity));
  }
}

/// The number of a field that the envelope or its body has and this side does not know; 0: none.
int unknown_field(const wire::Envelope& head) {
  const auto& unknown_here = head.GetReflection()->GetUnknownFields(head);
  if (!unknown_here.empty())
    return unknown_here.field(0).number();
  if (head.body_case() == wire::Envelope::BODY_NOT_SET)
    return 0;
  const auto* field = wire::Envelope::descriptor()->FindFieldByNumber(head.body_case());
  const google::protobuf::Message& body = head.GetReflection()->GetMessage(head, field);
  const auto& unknown = body.GetReflection()->GetUnknownFields(body);
  return unknown.empty() ? 0 : unknown.field(0).number();
}

} // namespace

std::uint32_t ShapePlaces::of(const Item& item,
                              google::protobuf::RepeatedPtrField<wire::Shape>& shapes) {
  if (!item.shape)
    return 0;
  const auto [at, added] =
      places_.try_emplace(item.shape.get(), static_cast<std::uint32_t>(shapes.size()) + 1);
  if (added)
    put(*item.shape, *shapes.Add());
  return at->second;
}

wire::Envelope envelope(std::uint64_t signature, const std::string& table) {
  wire::Envelope made;
  made.set_protocol(kProtocol);
  made.set_signature(signature);
  made.set_table(table);
  return made;
}

bool has_signature(const wire::Envelope& head, std::uint64_t signature, std::string& why) {
  if (head.signature() == signature)
    return true;
  why = "a message about other steps or items; give both sides the same signature";
  return false;
}

std::optional<wire::Envelope> decode_envelope(const std::string& header,
                                              std::optional<std::uint64_t> signature,
                                              std::string& why) {
  wire::Envelope made;
  if (!made.ParseFromString(header)) {
    why = "a header that is not an Envelope";
    return std::nullopt;
  }
  if (made.protocol() != kProtocol) {
    why = "protocol " + std::to_string(made.protocol()) + " where this side speaks "
          + std::to_string(kProtocol) + "; run the same version on both";
    return std::nullopt;
  }
  if (const int field = unknown_field(made); field != 0) {
    why = "a message with a field, number " + std::to_string(field) + ", that protocol "
          + std::to_string(kProtocol) + " does not have; run the same version on both";
    return std::nullopt;
  }
  if (signature && !has_signature(made, *signature, why))
    return std::nullopt;
  return made;
}

Message encode_insertion(const Insertion& insertion, std::uint64_t signature, bool complete,
                         const std::string& table) {
  if (insertion.items.empty() || insertion.items.size() > kMostItems)
    throw std::invalid_argument("an insertion of " + std::to_string(insertion.items.size())
                                + " items cannot be sent: 1 to " + std::to_string(kMostItems)
                                + "; take() them from the writer more often");
  wire::Envelope head = envelope(signature, table);
  wire::Insert& insert = *head.mutable_insert();
  insert.set_writer(insertion.writer_id);
  insert.set_sequence(insertion.sequence);
  insert.set_complete(complete);
  Message message;
  std::map<std::uint64_t, std::uint32_t> places;
  ShapePlaces shapes;
  std::vector<ItemRecord> records;
  records.reserve(insertion.items.size());
  for (const Item& item : insertion.items) {
    const std::uint64_t id = item.chunks[0]->id();
    const auto [at, added] = places.try_emplace(id, static_cast<std::uint32_t>(places.size()));
    if (added)
      insert.add_chunks(id);
    records.push_back({at->second, item.begin, item.rows, item.history,
                       shapes.of(item, *insert.mutable_shapes())});
  }
  insert.set_first_key(insertion.items[0].key);
  if (std::any_of(insertion.items.begin(), insertion.items.end(),
                  [](const Item& item) { return item.priority != 1; }))
    for (const Item& item : insertion.items)
      insert.add_priorities(item.priority);
  insert.set_capacity(insertion.items[0].chunks[0]->capacity());
  message.frames.emplace_back(std::as_bytes(std::span(records)));
  Ranges ranges;
  add_rows_to_send(insertion, complete, ranges);
  if (std::ssize(ranges) > kMostWireRows)
    throw std::invalid_argument("an insertion of " + std::to_string(ranges.size())
                                + " chunks cannot be sent: at most " + std::to_string(kMostWireRows)
                                + "; take() items from the writer more often");
  for (const auto& [id, range] : ranges) {
    wire::Rows& rows = *insert.add_rows();
    rows.set_chunk(id);
    rows.set_first(range.first);
    rows.set_count(range.end - range.first);
    rows.set_flags(range.chunk->flags() + range.first, range.end - range.first);
    const std::span<const std::byte> bytes(
        range.chunk->row(range.first), (range.end - range.first) * range.chunk->layout().row_bytes);
    message.frames.push_back(bytes.size() < kCopyBelow ? Frame(bytes)
                                                       : Frame::view(bytes, range.chunk));
  }
  message.header = head.SerializeAsString();
  return message;
}

InsertionDecoder::InsertionDecoder(const Signature& signature, const Limits& limits)
    : layout_(std::make_shared<const RowLayout>(signature)), limits_(limits) {}

InsertionDecoder::Known* InsertionDecoder::find(Writer& writer, std::uint64_t chunk) {
  for (Known& known : writer.chunks)
    if (known.chunk->id() == chunk)
      return &known;
  return nullptr;
}

bool InsertionDecoder::add_rows(Writer& writer, const wire::Rows& rows, std::uint32_t capacity,
                                const Frame& frame, bool complete, ChunkRows& made,
                                std::string& why, bool& missing) {
  const std::uint64_t end = std::uint64_t{rows.first()} + rows.count();
  if (rows.count() == 0 || end > capacity || rows.flags().size() != rows.count()
      || frame.size() != rows.count() * layout_->row_bytes) {
    why = "rows that do not fit their chunk";
    return false;
  }
  Known* known = find(writer, rows.chunk());
  if (known != nullptr && known->chunk->capacity() != capacity) {
    why = "a chunk that changes its size";
    return false;
  }
  if (known != nullptr && (rows.first() > known->high || end < known->low)) {
    if (!complete) {
      missing = true;
      return true;
    }
    // The rows between were lost; items of the old rows keep the old chunk.
    writer.closed.push_back(known->chunk);
    *known = {std::make_shared<Chunk>(layout_, rows.chunk(), capacity), rows.first(), rows.first()};
  }
  if (known == nullptr) {
    writer.chunks.push_back(
        {std::make_shared<Chunk>(layout_, rows.chunk(), capacity), rows.first(), rows.first()});
    known = &writer.chunks.back();
  }
  // Rows that are here already may be read by others at this moment: only new ones are written.
  const auto write = [&](std::uint32_t from, std::uint32_t to) {
    if (from >= to)
      return;
    const std::size_t skip = from - rows.first();
    std::memcpy(known->chunk->row(from), frame.bytes().data() + skip * layout_->row_bytes,
                (to - from) * layout_->row_bytes);
    std::memcpy(known->chunk->flags() + from, rows.flags().data() + skip, to - from);
  };
  write(rows.first(), std::min(known->low, static_cast<std::uint32_t>(end)));
  write(std::max(rows.first(), known->high), static_cast<std::uint32_t>(end));
  known->low = std::min(known->low, rows.first());
  known->high = std::max(known->high, static_cast<std::uint32_t>(end));
  made = {known->chunk, rows.first(), rows.count()};
  return true;
}

InsertionDecoder::Result InsertionDecoder::add_item(Writer& writer, const wire::Insert& header,
                                                    std::span<const ShapePtr> shapes,
                                                    const ItemRecord& record, Item& item) const {
  const std::uint32_t capacity = header.capacity();
  const std::uint64_t end = std::uint64_t{record.begin} + record.rows;
  if (record.chunk >= static_cast<std::size_t>(header.chunks_size()) || record.begin >= capacity
      || record.rows < 1 || record.rows > kMostWindow || record.history >= record.rows
      || (end - 1) / capacity >= kMostWireRows || record.shape >= shapes.size()
      || (record.shape > 0 && !fits(*shapes[record.shape], layout_->columns.size(), record.rows)))
    return Result::garbage;
  const std::uint64_t id = header.chunks(static_cast<int>(record.chunk));
  const std::uint64_t count = (end - 1) / capacity + 1;
  item.chunks.resize(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Known* known = find(writer, id + i);
    const std::uint64_t low = i == 0 ? record.begin : 0;
    const std::uint64_t high = std::min<std::uint64_t>(end - i * capacity, capacity);
    if (known == nullptr || known->chunk->capacity() != capacity || low < known->low
        || high > known->high)
      return Result::missing;
    item.chunks.set(i, known->chunk);
  }
  item.begin = record.begin;
  item.rows = record.rows;
  item.history = record.history;
  item.shape = shapes[record.shape];
  return Result::insertion;
}

InsertionDecoder::Result InsertionDecoder::decode(const wire::Insert& header,
                                                  std::span<const Frame> frames,
                                                  InsertionPtr& insertion, std::string& why) {
  const std::size_t items = frames.empty() ? 0 : frames[0].size() / sizeof(ItemRecord);
  if (frames.size() != 1 + static_cast<std::size_t>(header.rows_size()) || items == 0
      || frames[0].size() % sizeof(ItemRecord) != 0 || header.capacity() == 0
      || header.capacity() > limits_.max_chunk_bytes / layout_->row_bytes || items > kMostItems
      || header.rows_size() > kMostWireRows || header.shapes_size() > kMostShapes) {
    why = "an insertion whose parts do not fit its header";
    return Result::garbage;
  }
  const auto& priorities = header.priorities();
  if ((!priorities.empty() && static_cast<std::size_t>(priorities.size()) != items)
      || !std::all_of(priorities.begin(), priorities.end(), valid_priority)) {
    why = "an insertion whose priorities are not one of 0 to 1e12 for each item";
    return Result::garbage;
  }
  Writer& from = remember(writers_, header.writer(), limits_.max_writers, ++used_);
  const Result result = build(from, header, frames, items, insertion, why);
  const std::size_t keep = kChunksPerWriter + from.keep;
  if (from.chunks.size() > keep) {
    std::sort(from.chunks.begin(), from.chunks.end(),
              [](const Known& a, const Known& b) { return a.chunk->id() < b.chunk->id(); });
    const auto kept = from.chunks.end() - static_cast<std::ptrdiff_t>(keep);
    for (auto at = from.chunks.begin(); at != kept; ++at)
      from.closed.push_back(std::move(at->chunk));
    from.chunks.erase(from.chunks.begin(), kept);
  }
  return result;
}

InsertionDecoder::Result InsertionDecoder::build(Writer& from, const wire::Insert& header,
                                                 std::span<const Frame> frames, std::size_t items,
                                                 InsertionPtr& insertion, std::string& why) {
  auto made = std::make_shared<Insertion>();
  made->writer_id = header.writer();
  made->sequence = header.sequence();
  made->rows.resize(static_cast<std::size_t>(header.rows_size()));
  bool missing = false;
  for (int i = 0; i < header.rows_size(); ++i)
    if (!add_rows(from, header.rows(i), header.capacity(), frames[static_cast<std::size_t>(i) + 1],
                  header.complete(), made->rows[static_cast<std::size_t>(i)], why, missing))
      return Result::garbage;
  std::vector<ShapePtr> shapes{nullptr};
  for (const wire::Shape& shape : header.shapes()) {
    shapes.push_back(shape_of(shape));
    if (!fits(*shapes.back(), layout_->columns.size(), kMostWindow)) {
      why = "items of a shape that the columns do not have";
      return Result::garbage;
    }
  }
  made->items.resize(items);
  for (std::size_t i = 0; i < items && !missing; ++i) {
    ItemRecord record;
    std::memcpy(&record, frames[0].bytes().data() + i * sizeof record, sizeof record);
    made->items[i].key = header.first_key() + i;
    const Result result = add_item(from, header, shapes, record, made->items[i]);
    if (!header.priorities().empty())
      made->items[i].priority = header.priorities(static_cast<int>(i));
    if (result == Result::garbage) {
      why = "an item outside its chunks";
      return Result::garbage;
    }
    missing = result == Result::missing;
    from.keep = std::max(from.keep, made->items[i].chunks.size());
  }
  if (missing) {
    why = "a complete insertion that lacks rows of its items";
    return header.complete() ? Result::garbage : Result::missing;
  }
  made->closed = std::exchange(from.closed, {}); // chunks that this one closes go with the next
  insertion = std::move(made);
  return Result::insertion;
}

} // namespace troupe::replay
