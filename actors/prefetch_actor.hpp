#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "actors/batch.hpp"
#include "actors/messages.hpp"

namespace troupe::actors {

struct PrefetchOptions {
  int replica = 0;
  std::int64_t rows = 0; // of a batch
  int ahead = 2;         // batches kept ready
  std::vector<ReplayActor> shards;
  replay::TransitionSpec transitions;
  caf::actor learner;
  std::int64_t start = 0; // number of the first batch
};

struct PrefetchState {
  static const char* name;
  struct Pending {
    BatchPtr buffer;
    std::size_t missing = 0; // answers
  };
  PrefetchOptions options;
  std::int64_t granted = 0;
  std::int64_t asked = 0;
  std::vector<BatchPtr> free;
  std::deque<Pending> pending; // by number
};

/// Asks the shards for equal parts of each batch, gathers them into a reused buffer and sends it to
/// the learner in order. Detached: gathering runs beside the learner's update.
PrefetchActor::behavior_type prefetch_actor(PrefetchActor::stateful_pointer<PrefetchState> self,
                                            PrefetchOptions options);

} // namespace troupe::actors
