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

/// The data plane's messages as bytes: pure functions under ShardClient and ShardServer. All
/// numbers are little endian. Decoders treat bytes as untrusted: on any bytes they return false or
/// throw only bad_alloc, and allocate no more than the given limits.
namespace troupe::replay {

constexpr std::uint32_t kProtocol = 5;
constexpr std::uint32_t kMostWindow = std::uint32_t{1} << 24; // rows of an item
constexpr std::size_t kPartBytes = std::size_t{1} << 20;      // of a sample by default

constexpr std::size_t kHeaderBytes = std::size_t{2} << 20; // of any message
static_assert(kHeaderBytes > 65536 * 16 + 65536, "priorities of 65,536 items travel in one");

// Of an insertion:
constexpr std::size_t kMostInsertionBytes = std::size_t{512}
                                            << 20; // or an item of the largest frame
constexpr std::size_t most_insertion_bytes(std::size_t max_frame_bytes) {
  return max_frame_bytes > kMostInsertionBytes ? max_frame_bytes : kMostInsertionBytes;
}
constexpr std::size_t kMostItems = 65536;
constexpr std::size_t kMostItemChunks = 4 * kMostItems; // that all items together span
constexpr int kMostWireRows = 512;                      // chunks with rows
constexpr int kMostShapes = 4096;                       // of its items

/// One item of an Insert message. Its window begins in the chunk with the id Insert.chunks[chunk]
/// and continues in the chunks with the following ids.
struct ItemRecord {
  std::uint32_t chunk = 0;
  std::uint32_t begin = 0;
  std::uint32_t rows = 0;
  std::uint32_t history = 0;
  std::uint32_t shape = 0; // 0: all rows; else a place in Insert.shapes, from 1
};

/// One item of a SamplePart.
struct SampleRecord {
  std::uint64_t key = 0;
  double priority = 1;
  double probability = 0;
  std::uint32_t rows = 0; // of the window
  std::uint32_t history = 0;
  std::uint32_t shape = 0; // as ItemRecord's
  std::uint32_t times_sampled = 0;
};

/// Gives the shapes of a message's items their places in it, from 1.
class ShapePlaces {
public:
  std::uint32_t of(const Item& item, google::protobuf::RepeatedPtrField<wire::Shape>& shapes);

private:
  std::map<const ItemShape*, std::uint32_t> places_;
};

/// The message of an insertion. Complete: with every row its items need, also those of earlier
/// insertions. Rows travel from their chunks without a copy where they are many. Throws
/// std::invalid_argument on more items, chunks, shapes or bytes (`most_bytes` of rows) than a
/// message may have.
env::wire::Message encode_insertion(const Insertion& insertion, std::uint64_t signature,
                                    bool complete, const std::string& table = {},
                                    std::size_t most_bytes = kMostInsertionBytes);

/// How many of the first of `items` fit one part of about so many bytes; at least one.
std::size_t part_size(const RowLayout& layout, std::span<const Item> items,
                      std::size_t part_bytes = kPartBytes);

/// What is above `most` bytes: a chunk, or what an item shows of a column; "" where nothing is.
std::string too_large(const RowLayout& layout, const Insertion& insertion, std::size_t most);

/// Gives memory for a data frame of a number of bytes: where the message is gathered.
using FrameMaker = std::function<env::wire::Frame(std::size_t)>;

/// The message of rows [first, first + items.size()) of a sampled batch: every row that an item
/// shows travels once.
env::wire::Message encode_sample(const RowLayout& layout, std::uint64_t signature,
                                 std::uint64_t request, std::int64_t first,
                                 std::span<const Item> items, const FrameMaker& frame);

/// Writes the part's transitions to rows [first_row, first_row + header.count()) of the batch,
/// which are known to exist. False, with nothing or some rows written, on a message that is not
/// such a part.
bool decode_sample(const TransitionSpec& spec, const wire::SamplePart& header,
                   std::span<const env::wire::Frame> frames, const BatchView& batch,
                   std::int64_t first_row);

/// The part's items of any windows, whose columns stay where they are. False, with `part` in any
/// state, on a message that is not such a part.
bool decode_columns(const RowLayout& layout, const wire::SamplePart& header,
                    std::vector<env::wire::Frame> frames, ColumnPart& part);

/// The header of any message, with its protocol, its fields and, where one is given, its signature
/// checked; nullopt and `why` otherwise.
std::optional<wire::Envelope> decode_envelope(const std::string& header,
                                              std::optional<std::uint64_t> signature,
                                              std::string& why);
bool has_signature(const wire::Envelope& head, std::uint64_t signature, std::string& why);
/// `table`: "" where there is but one.
wire::Envelope envelope(std::uint64_t signature, const std::string& table = {});

} // namespace troupe::replay
