#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
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
/// std::invalid_argument on more items or chunks than a message may have.
env::wire::Message encode_insertion(const Insertion& insertion, std::uint64_t signature,
                                    bool complete, const std::string& table = {});

/// Rebuilds insertions of remote writers in chunks of its own. One thread.
class InsertionDecoder {
public:
  struct Limits {
    std::size_t max_chunk_bytes = 0;
    std::size_t max_writers = 0; // the least recently active is forgotten
  };
  enum class Result { insertion, missing, garbage }; // missing: rows that it refers to are not here

  InsertionDecoder(const Signature& signature, const Limits& limits);

  /// `why` says what is wrong with garbage.
  Result decode(const wire::Insert& header, std::span<const env::wire::Frame> frames,
                InsertionPtr& insertion, std::string& why);

private:
  struct Known { // a chunk of a writer and the rows of it that are here
    std::shared_ptr<Chunk> chunk;
    std::uint32_t low = 0;
    std::uint32_t high = 0;
  };
  struct Writer {
    std::vector<Known> chunks;    // newest last
    std::size_t keep = 0;         // chunks: as many as its longest item spans, and a few
    std::vector<ChunkPtr> closed; // since its last insertion: no longer in chunks
    std::uint64_t used = 0;
  };

  Result build(Writer& from, const wire::Insert& header, std::span<const env::wire::Frame> frames,
               std::size_t items, InsertionPtr& insertion, std::string& why);
  static Known* find(Writer& writer, std::uint64_t chunk);
  bool add_rows(Writer& writer, const wire::Rows& rows, std::uint32_t capacity,
                const env::wire::Frame& frame, bool complete, ChunkRows& made, std::string& why,
                bool& missing);
  Result add_item(Writer& writer, const wire::Insert& header, std::span<const ShapePtr> shapes,
                  const ItemRecord& record, Item& item) const;

  std::shared_ptr<const RowLayout> layout_;
  Limits limits_;
  std::unordered_map<std::uint64_t, Writer> writers_;
  std::uint64_t used_ = 0;
};

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
