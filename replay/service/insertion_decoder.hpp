#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "env/wire/frame.hpp"
#include "replay/chunks/insertion.hpp"
#include "replay/replay.pb.h"

namespace troupe::replay {

struct ItemRecord;

/// Rebuilds the insertions of remote writers, copying their rows into chunks that it allocates.
/// Used by one thread at a time.
///
/// The whole message is checked before anything is allocated for it; a message that is garbage or
/// lacks rows changes nothing. Chunks that only the decoder holds count towards `max_bytes` at full
/// capacity. Above that limit the least recently active writers are forgotten, and their next
/// insertion is `missing`. A complete insertion with a gap before or after the rows that are
/// present of one of its chunks replaces all chunks of its writer; earlier items keep the old ones.
class InsertionDecoder {
public:
  struct Limits {
    std::size_t max_chunk_bytes = 0;
    std::size_t max_writers = 0; // the least recently active is forgotten
    std::size_t max_bytes = std::size_t{1} << 30;
  };
  /// `missing`: the decoder lacks rows that the items need.
  enum class Result { insertion, missing, garbage };

  InsertionDecoder(const Signature& signature, const Limits& limits);

  /// Decodes an Insert message into `insertion`. If it is garbage, `why` says what is wrong. Throws
  /// only bad_alloc, without changing anything.
  Result decode(const wire::Insert& header, std::span<const env::wire::Frame> frames,
                InsertionPtr& insertion, std::string& why);

  std::size_t held_bytes() const; // bytes that only the decoder holds

private:
  struct Known { // a chunk of a writer, of which rows [low, high) are present
    std::shared_ptr<Chunk> chunk;
    std::uint32_t low = 0;
    std::uint32_t high = 0;
  };
  struct Writer {
    std::vector<Known> chunks;    // newest last
    std::size_t keep = 0;         // number of chunks that its longest item spans
    std::vector<ChunkPtr> closed; // removed from `chunks` since its last insertion
    std::uint64_t used = 0;
  };
  struct Plan;

  bool plan_rows(const wire::Insert& header, std::span<const env::wire::Frame> frames, Plan& plan,
                 std::string& why) const;
  Result plan_items(const wire::Insert& header, const env::wire::Frame& records, Plan& plan,
                    std::string& why) const;
  InsertionPtr apply(Writer& from, const wire::Insert& header,
                     std::span<const env::wire::Frame> frames, Plan& plan) const;
  void trim(Writer& writer) const;
  void keep_to_budget(std::size_t opened);
  static std::size_t held_bytes(const Writer& writer);

  std::shared_ptr<const RowLayout> layout_;
  Limits limits_;
  std::unordered_map<std::uint64_t, Writer> writers_;
  std::uint64_t used_ = 0;
  std::size_t held_at_most_ = 0; // held_bytes() when last counted, plus chunks opened since
};

} // namespace troupe::replay
