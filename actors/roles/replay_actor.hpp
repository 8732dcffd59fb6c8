#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "actors/protocol/messages.hpp"
#include "actors/roles/shard_snapshots.hpp"
#include "actors/roles/span_recorder.hpp"
#include "actors/roles/state_writes.hpp"
#include "replay/service/hosted_shard.hpp"
#include "replay/table/table_checkpoint.hpp"

namespace troupe::actors {

struct ReplayOptions {
  int shard = 0;
  int shards = 1;       // of the run
  int replicas = 1;     // learners that sample
  bool in_turn = false; // deterministic: serve requests by number, then by replica, not by arrival
  bool in_turn_updates = false; // also serve priorities in turn, after the samples of their number
  replay::TableConfig table;
  replay::TransitionSpec transitions;
  std::filesystem::path recording = {}; // recorded episodes to start with; empty: none
  std::uint64_t seed = 1;
  std::filesystem::path spill_folder = {};    // for chunks that do not fit into memory; empty: none
  std::uint64_t spill_bytes = 0;              // maximum on disk
  std::filesystem::path snapshot_folder = {}; // a later incarnation restores from it; empty: none
  std::chrono::milliseconds snapshot_period{30'000};
  std::uint64_t incarnation = 0; // above 0: start from the newest snapshot
  /// Where to serve other processes. If the endpoint is in use, another port of its host is taken.
  /// Empty: serve only actors of this process.
  std::string endpoint = {};
  std::shared_ptr<env::wire::Context> context = {}; // of the endpoint
};

struct ReplayState {
  static const char* name;
  ReplayOptions options;
  std::shared_ptr<replay::HostedShard> shard;
  std::uint64_t next_turn = 0;
  bool ticking = false; // a request with a deadline may be waiting
  bool stopping = false;
  std::map<std::uint64_t, std::function<void()>>
      turns;                               // deterministic: requests that arrived before their turn
  std::optional<StateWrites> writes;       // always set
  std::filesystem::path snapshot;          // the newest
  std::optional<ShardSnapshots> snapshots; // set if there is a snapshot_folder
  bool unwritten = false;                  // no checkpoint of this table is on the disk yet
  std::uint64_t checkpoints = 0;           // of this incarnation; some are written whole
  bool whole_snapshot = false;             // the next snapshot links to no older file
  std::string snapshot_problem;            // of the last snapshot; "" if it was written
  SpanRecorder spans;
  std::unique_ptr<replay::ShardServer> server; // last: its thread uses the shard
};

/// Runs one shard of the table: serves it to actors of this process by messages, or to other
/// processes at an endpoint (hello_atom), and writes its checkpoints. Requests wait in the shard
/// for the rate limiter. Shortly before its deadline a request is answered with Fault::late and the
/// reason, on exit with Fault::stopping. With a snapshot_folder the actor writes a snapshot every
/// snapshot_period on another thread, and a later incarnation starts from the newest one.
ReplayActor::behavior_type replay_actor(ReplayActor::stateful_pointer<ReplayState> self,
                                        ReplayOptions options);

} // namespace troupe::actors
