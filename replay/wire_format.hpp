#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "env/wire/socket.hpp"
#include "replay/batch.hpp"
#include "replay/insertion.hpp"
#include "replay/replay.pb.h"
#include "replay/spec.hpp"

/// The data plane's messages as bytes: pure functions under ShardClient and ShardServer. All
/// numbers are little endian. Decoders believe nothing: they return false or throw nothing but
/// bad_alloc on any bytes, and allocate no more than the limits they are given.
namespace troupe::replay {

constexpr std::uint32_t kProtocol = 2;

/// One item of an Insert message; `chunk` and `next_chunk` are places in Insert.chunks.
struct ItemRecord {
  std::uint16_t chunk = 0;
  std::uint16_t next_chunk = 0; // kNoChunk: the window ends in the first
  std::uint32_t begin = 0;
  std::uint16_t history = 0;
  std::uint16_t steps = 0;
};
constexpr std::uint16_t kNoChunk = 0xffff;

/// One item of a SamplePart; its action follows.
struct SampleRecord {
  std::uint64_t key = 0;
  float reward = 0;
  float discount = 0;
  std::uint16_t history = 0;
  std::uint16_t steps = 0;
  std::uint32_t times_sampled = 0;
  double priority = 1;
  double probability = 0;
};

/// The message of an insertion. Complete: with every row its items need, also those of earlier
/// insertions. Rows travel from their chunks without a copy where they are many. Throws
/// std::invalid_argument on more items or chunks than a message may have.
env::wire::Message encode_insertion(const Insertion& insertion, std::uint64_t spec, bool complete);

/// Builds insertions of remote writers again, in chunks of its own. One thread.
class InsertionDecoder {
public:
  struct Limits {
    std::size_t max_chunk_bytes = 0;
    std::size_t max_writers = 0; // the one silent for longest is forgotten
  };
  enum class Result { insertion, missing, garbage }; // missing: rows it builds on are not here

  InsertionDecoder(const TransitionSpec& spec, const Limits& limits);

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
    std::vector<Known> chunks; // newest last
    std::uint64_t used = 0;
  };

  Result build(Writer& from, const wire::Insert& header, std::span<const env::wire::Frame> frames,
               std::size_t items, InsertionPtr& insertion, std::string& why);
  Writer& writer(std::uint64_t id);
  static Known* find(Writer& writer, std::uint64_t chunk);
  bool add_rows(Writer& writer, const wire::Rows& rows, std::uint32_t capacity,
                const env::wire::Frame& frame, bool complete, ChunkRows& made, std::string& why,
                bool& missing);
  Result add_item(Writer& writer, const wire::Insert& header, const ItemRecord& record,
                  Item& item) const;

  TransitionSpec spec_;
  RowLayout layout_;
  Limits limits_;
  std::unordered_map<std::uint64_t, Writer> writers_;
  std::uint64_t used_ = 0;
};

/// How many of the first of `items` fit one part of about a MiB; at least one.
std::size_t part_size(const TransitionSpec& spec, std::span<const Item> items);

/// Gives memory for a data frame of a number of bytes: where the message is gathered.
using FrameMaker = std::function<env::wire::Frame(std::size_t)>;

/// The message of rows [first, first + items.size()) of a sampled batch: every frame of an item
/// travels once though observation and next observation may share it.
env::wire::Message encode_sample(const TransitionSpec& spec, std::uint64_t fingerprint,
                                 std::uint64_t request, std::int64_t first,
                                 std::span<const Item> items, const FrameMaker& frame);

/// Writes the part to rows [first_row, first_row + header.count()) of the batch, which are known to
/// exist. False, with nothing or some rows written, on a message that is not such a part.
bool decode_sample(const TransitionSpec& spec, const wire::SamplePart& header,
                   std::span<const env::wire::Frame> frames, const BatchView& batch,
                   std::int64_t first_row);

/// The header of any message with its protocol and spec checked; nullopt and `why` otherwise.
std::optional<wire::Envelope> decode_envelope(const std::string& header, std::uint64_t spec,
                                              std::string& why);
wire::Envelope envelope(std::uint64_t spec);

} // namespace troupe::replay
