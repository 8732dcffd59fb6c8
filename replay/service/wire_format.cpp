#include "replay/service/wire_format.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include "replay/table/selector.hpp"
#include "replay/table/table_config_wire.hpp"

namespace troupe::replay {

namespace {

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(ItemRecord) == 20);

using env::wire::Frame;
using env::wire::Message;

constexpr std::size_t kCopyBelow = 4096; // frames with fewer bytes are copied

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

/// Throws std::invalid_argument if an insertion has more than `most` of something.
void check_most(std::size_t count, std::size_t most, const char* what) {
  if (count > most)
    throw std::invalid_argument("an insertion of " + std::to_string(count) + " " + what
                                + " cannot be sent: at most " + std::to_string(most)
                                + "; take() items from the writer more often");
}

/// Returns the number of a field of the envelope or its body that this version does not know; 0 if
/// there is none.
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

std::vector<ReceivedShape>
decode_shapes(const RowLayout& layout,
              const google::protobuf::RepeatedPtrField<wire::Shape>& shapes) {
  std::vector<ReceivedShape> made(1);
  for (const wire::Shape& shape : shapes) {
    ReceivedShape& received = made.emplace_back();
    received.shape = shape_of(shape);
    if (!fits(*received.shape, layout.columns.size(), kMostWindow))
      return {};
    for (const std::vector<Slice>& slices : received.shape->columns)
      for (const Slice& slice : slices)
        received.window = std::max(received.window, slice.first + slice.count);
  }
  return made;
}

wire::Envelope envelope(std::uint64_t signature, const std::string& table) {
  wire::Envelope made;
  made.set_protocol(kProtocol);
  made.set_signature(signature);
  made.set_table(table);
  return made;
}

std::optional<wire::Envelope> decode_envelope(const std::string& header, std::string& why) {
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
  return made;
}

Message encode_insertion(const Insertion& insertion, std::uint64_t signature, bool complete,
                         const std::string& table, std::size_t most_bytes) {
  if (insertion.items.empty())
    throw std::invalid_argument("an insertion without items cannot be sent");
  check_most(insertion.items.size(), kMostItems, "items");
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
  std::size_t spanned = 0;
  for (const Item& item : insertion.items) {
    spanned += item.chunks.size();
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
  check_most(spanned, kMostItemChunks, "chunks that its items span together");
  check_most(static_cast<std::size_t>(insert.shapes_size()), kMostShapes, "shapes of items");
  insert.set_capacity(insertion.items[0].chunks[0]->capacity());
  message.frames.emplace_back(std::as_bytes(std::span(records)));
  Ranges ranges;
  add_rows_to_send(insertion, complete, ranges);
  check_most(ranges.size(), kMostWireRows, "chunks");
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
  check_most(message.header.size(), kHeaderBytes,
             "bytes of its header (one for each row, up to 8 for each item)");
  std::size_t bytes = 0;
  for (const Frame& frame : message.frames)
    bytes += frame.size();
  check_most(bytes, most_bytes, "bytes");
  return message;
}

} // namespace troupe::replay
