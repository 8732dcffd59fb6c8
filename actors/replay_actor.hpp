#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "replay/shard.hpp"
#include "replay/table_checkpoint.hpp"

namespace troupe::actors {

struct ReplayOptions {
  int shard = 0;
  int shards = 1;   // of the run
  int replicas = 1; // learners that sample
  bool in_turn =
      false; // deterministic: requests are served by number, then replica, whatever their arrival
  bool in_turn_updates = false; // and priorities between the samples of one number and the next
  replay::TableConfig table;
  replay::TransitionSpec transitions;
  std::uint64_t seed = 1;
  std::filesystem::path spill_folder = {};    // of what does not fit into memory; empty: none
  std::uint64_t spill_bytes = 0;              // at most, on disk
  std::filesystem::path snapshot_folder = {}; // of its own, to come back from; empty: none
  std::chrono::milliseconds snapshot_period{30'000};
  std::uint64_t incarnation = 0; // above 0: it begins with the newest snapshot
};

struct ReplayState {
  static const char* name;
  ReplayOptions options;
  std::unique_ptr<replay::Shard> shard;
  std::uint64_t next_turn = 0;
  bool ticking = false;  // somebody waits with a deadline
  bool stopping = false; // those who wait are told so
  std::map<std::uint64_t, std::function<void()>>
      turns; // deterministic: requests that came before their turn
  struct Write {
    replay::TableSnapshot snapshot;
    std::filesystem::path folder;
    std::filesystem::path previous;
    bool own = false; // not a part of the run's checkpoint
  };
  std::deque<Write> writes;       // the first is on its way; at most one own and one checkpoint
  std::filesystem::path snapshot; // the newest
  std::int64_t snapshots = 0;     // number of the newest
  bool unwritten = false;         // nothing on the disk is of this table, whatever we are told
  caf::error write_failure;
  std::string snapshot_problem; // with the last one; "" when it was written
  std::vector<caf::typed_response_promise<done_atom>> waiting_for_write;
};

/// Owns one shard of the table. Inserts and samples wait in it for the rate limiter, at most until
/// shortly before their requests end, and are then answered with Fault::late and who waits for
/// what; on exit everyone who waits is answered with Fault::stopping. With a snapshot_folder it
/// writes itself there every snapshot_period, beside what else it does, and a later incarnation
/// begins with that.
ReplayActor::behavior_type replay_actor(ReplayActor::stateful_pointer<ReplayState> self,
                                        ReplayOptions options);

} // namespace troupe::actors
