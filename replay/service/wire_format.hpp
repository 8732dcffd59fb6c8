#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "env/wire/socket.hpp"
#include "replay/batch/batch.hpp"
#include "replay/batch/column_batch.hpp"
#include "replay/chunks/insertion.hpp"
#include "replay/chunks/signature.hpp"
#include "replay/replay.pb.h"

/// Encodes and decodes the messages of the data plane, as pure functions for ShardClient and
/// ShardServer. All numbers are little endian. Decoders treat bytes as untrusted: on invalid bytes
/// they return false or throw only bad_alloc, and they allocate no more than the given limits.
namespace troupe::replay {

constexpr std::uint32_t kProtocol = 6;
constexpr std::size_t kPartBytes = std::size_t{1} << 20; // default size of a message of a sample

constexpr std::size_t kHeaderBytes = std::size_t{2} << 20; // of any message
static_assert(kHeaderBytes > 65536 * 16 + 65536, "priorities of 65,536 items travel in one");

// Limits of an insertion:
constexpr std::size_t kMostInsertionBytes = std::size_t{512}
                                            << 20; // or an item of the largest frame
constexpr std::size_t most_insertion_bytes(std::size_t max_frame_bytes) {
  return max_frame_bytes > kMostInsertionBytes ? max_frame_bytes : kMostInsertionBytes;
}
constexpr std::size_t kMostItems = 65536;
constexpr std::size_t kMostItemChunks = 4 * kMostItems; // spanned by all items together
constexpr int kMostWireRows = 512;                      // chunks with rows
constexpr int kMostShapes = 4096;                       // different shapes of its items

/// One item of an Insert message. Its window begins in the chunk with the id Insert.chunks[chunk]
/// and continues in the chunks with the following ids.
struct ItemRecord {
  std::uint32_t chunk = 0;
  std::uint32_t begin = 0;
  std::uint32_t rows = 0;
  std::uint32_t history = 0;
  std::uint32_t shape = 0; // 0: all rows; n: Insert.shapes[n - 1]
};

/// One item of a SamplePart.
struct SampleRecord {
  std::uint64_t key = 0;
  double priority = 1;
  double probability = 0;
  std::uint32_t rows = 0; // rows of the window
  std::uint32_t history = 0;
  std::uint32_t shape = 0; // as in ItemRecord
  std::uint32_t times_sampled = 0;
};

/// Adds the shapes of items to a message and returns the number of each there, from 1.
class ShapePlaces {
public:
  std::uint32_t of(const Item& item, google::protobuf::RepeatedPtrField<wire::Shape>& shapes);

private:
  std::map<const ItemShape*, std::uint32_t> places_;
};

/// A received shape and the smallest window that it fits, which is computed once, because many
/// items share a shape.
struct ReceivedShape {
  ShapePtr shape; // null: all rows
  std::uint32_t window = 1;
};

/// Returns the shapes of a message by their numbers; number 0 is a null shape. Empty if one of them
/// does not fit the columns of `layout`.
std::vector<ReceivedShape>
decode_shapes(const RowLayout& layout,
              const google::protobuf::RepeatedPtrField<wire::Shape>& shapes);

/// Returns the message of an insertion. If `complete`, it contains every row that the items need,
/// including rows of earlier insertions. Large frames refer to their chunks without a copy. Throws
/// std::invalid_argument if there are more items, chunks, shapes or bytes (`most_bytes` of rows)
/// than a message may have.
env::wire::Message encode_insertion(const Insertion& insertion, std::uint64_t signature,
                                    bool complete, const std::string& table = {},
                                    std::size_t most_bytes = kMostInsertionBytes);

/// Returns how many of `items`, from the first on, fit into one part of about `part_bytes` bytes;
/// at least one.
std::size_t part_size(const RowLayout& layout, std::span<const Item> items,
                      std::size_t part_bytes = kPartBytes);

/// Says what exceeds `most` bytes: a chunk, or the rows of a column that an item shows; "" if
/// nothing does.
std::string too_large(const RowLayout& layout, const Insertion& insertion, std::size_t most);

/// Returns memory of this many bytes for a data frame, into which a message is gathered.
using FrameMaker = std::function<env::wire::Frame(std::size_t)>;

/// Returns the message with rows [first, first + items.size()) of a sampled batch. It contains the
/// rows that the items show.
env::wire::Message encode_sample(const RowLayout& layout, std::uint64_t signature,
                                 std::uint64_t request, std::int64_t first,
                                 std::span<const Item> items, const FrameMaker& frame);

/// Writes the transitions of a part to rows [first_row, first_row + header.count()) of the batch,
/// which must exist. `layout` is that of `spec`. Returns false if the message is not such a part;
/// some rows may have been written then.
bool decode_sample(const TransitionSpec& spec, const RowLayout& layout,
                   const wire::SamplePart& header, std::span<const env::wire::Frame> frames,
                   const BatchView& batch, std::int64_t first_row);

/// Decodes the items of a part with any windows; their columns stay in the frames. Returns false if
/// the message is not such a part; the state of `part` is undefined then.
bool decode_columns(const RowLayout& layout, const wire::SamplePart& header,
                    std::vector<env::wire::Frame> frames, ColumnPart& part);

/// Decodes the header of any message and checks its protocol and its fields. On failure returns
/// nullopt and sets `why`.
std::optional<wire::Envelope> decode_envelope(const std::string& header, std::string& why);
/// Returns an envelope; `table` may be "" if the port has only one.
wire::Envelope envelope(std::uint64_t signature, const std::string& table = {});

} // namespace troupe::replay
