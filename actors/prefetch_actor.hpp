#pragma once

#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "actors/batch.hpp"
#include "actors/messages.hpp"
#include "replay/parallel_gather.hpp"

namespace troupe::actors {

struct PrefetchOptions {
  int replica = 0;
  std::int64_t rows = 0; // of a batch
  int ahead = 2;         // batches kept ready
  int threads = 1;       // that gather
  std::vector<ReplayActor> shards;
  replay::TransitionSpec transitions;
  caf::actor learner;
  std::int64_t start = 0;              // number of the first batch
  bool feedback = false;               // the learner's priorities go back to the shards
  bool weighted = false;               // rows get importance weights; else all 1
  double importance_exponent = 1;      // at update 0, growing to 1 …
  std::int64_t importance_updates = 0; // … over so many; 0: constant
};

struct PrefetchState {
  static const char* name;
  struct Pending {
    BatchPtr buffer;
    std::size_t missing = 0;           // answers
    std::set<std::size_t> shards = {}; // that have not given theirs
  };
  PrefetchOptions options;
  std::int64_t granted = 0;
  std::int64_t asked = 0;
  std::vector<BatchPtr> free;
  std::deque<Pending> pending; // by number
  std::unique_ptr<replay::ParallelGather> gather;
  std::int64_t unacknowledged = 0; // priorities on their way to shards
  std::vector<caf::typed_response_promise<done_atom>> flushing;
};

/// Asks the shards for equal parts of each batch, gathers them into a reused buffer and sends it to
/// the learner in order. Buffers come back with priorities, which go to the shards that the rows
/// came from before anything new is asked for: they are late by `ahead` batches at most, and no
/// more of them are on their way than there are buffers. Detached: gathering runs beside the
/// learner's update, in `threads` parts.
PrefetchActor::behavior_type prefetch_actor(PrefetchActor::stateful_pointer<PrefetchState> self,
                                            PrefetchOptions options);

} // namespace troupe::actors
