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

/// Rebuilds insertions of remote writers in chunks of its own. One thread.
///
/// A message is checked whole before anything is allocated for it: one that is garbage, or that
/// lacks rows, changes nothing. Chunks that only the decoder holds count towards `max_bytes`, with
/// all the rows that they may get; above it the least recently active writers are forgotten, whose
/// next insertion is then `missing`.
class InsertionDecoder {
public:
  struct Limits {
    std::size_t max_chunk_bytes = 0;
    std::size_t max_writers = 0; // the least recently active is forgotten
    std::size_t max_bytes = std::size_t{1} << 30;
  };
  enum class Result { insertion, missing, garbage }; // missing: rows that it refers to are not here

  InsertionDecoder(const Signature& signature, const Limits& limits);

  /// `why` says what is wrong with garbage. Throws only bad_alloc, and changes nothing then.
  Result decode(const wire::Insert& header, std::span<const env::wire::Frame> frames,
                InsertionPtr& insertion, std::string& why);

  std::size_t held_bytes() const; // that only the decoder holds

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
  struct Plan;

  bool plan_rows(const wire::Insert& header, std::span<const env::wire::Frame> frames, Plan& plan,
                 std::string& why) const;
  bool plan_shapes(const wire::Insert& header, Plan& plan, std::string& why) const;
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
  std::size_t held_at_most_ = 0; // held_bytes() when it was last counted, and what opened since
};

} // namespace troupe::replay
