#pragma once

#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "actors/protocol/batch.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/roles/shard_endpoints.hpp"
#include "collectives/timeline.hpp"
#include "replay/batch/parallel_gather.hpp"
#include "replay/service/sharded_client.hpp"

namespace troupe::actors {

struct PrefetchOptions {
  int replica = 0;
  std::int64_t rows = 0;      // of a batch
  std::int64_t item_uses = 1; // times that each batch goes to the learner; above 1: no feedback
  std::uint64_t seed = 1;     // for the choice of rows per shard in other processes
  int ahead = 2;              // batches to keep ready
  int threads = 1;            // to gather with
  std::vector<ReplayActor> shards = {};
  ShardEndpoints remote = {}; // used instead of `shards` if it has endpoints
  replay::TransitionSpec transitions = {};
  caf::actor learner = {};
  std::int64_t start = 0;              // number of the first batch
  bool feedback = false;               // the learner's priorities go back to the shards
  bool weighted = false;               // rows get importance weights; otherwise all are 1
  double importance_exponent = 1;      // at update 0, growing to 1 …
  std::int64_t importance_updates = 0; // … over this many; 0: constant
  std::shared_ptr<collectives::Timeline> timeline = nullptr; // of the learner; null: none
};

struct PrefetchState {
  static const char* name;
  struct Pending {
    BatchPtr buffer;
    std::size_t missing = 0;           // answers not received yet
    std::set<std::size_t> shards = {}; // that have not answered yet
  };
  PrefetchOptions options;
  std::int64_t granted = 0;
  std::int64_t asked = 0;
  std::int64_t requested = 0; // batches requested from shards of this process
  std::vector<BatchPtr> free;
  std::deque<Pending> pending;                   // in order of their numbers
  std::unique_ptr<replay::ShardedClient> client; // for shards in other processes
  std::string silence;  // why a shard in another process does not answer at present; "": it does
  bool looking = false; // a tick is on its way
  std::unique_ptr<replay::ParallelGather> gather;
  std::int64_t unacknowledged = 0; // priorities on their way to shards
  std::vector<caf::typed_response_promise<done_atom>> flushing;
};

/// Fills reused buffers with batches and sends them to the learner in order. From shards of this
/// process it requests equal parts and gathers them with `threads` threads. Shards of other
/// processes are sampled in proportion to their weights by a ShardedClient, which receives directly
/// into the buffers. A batch whose items have uses left goes to the learner again before another
/// one is requested. Buffers come back with priorities, which are sent to the rows' shards before
/// anything new is requested, so they are late by at most `ahead` batches. Waits for samples
/// without a deadline: the supervisor notices dead shards, and the report says what it waits for.
/// Detached: gathering overlaps with the learner's update.
PrefetchActor::behavior_type prefetch_actor(PrefetchActor::stateful_pointer<PrefetchState> self,
                                            PrefetchOptions options);

} // namespace troupe::actors
