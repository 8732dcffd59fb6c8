#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "replay/shard.hpp"

namespace troupe::actors {

struct ReplayOptions {
  int shard = 0;
  int replicas = 1; // learners that sample
  bool in_turn =
      false; // deterministic: requests are served by number, then replica, whatever their arrival
  bool in_turn_updates = false; // and priorities between the samples of one number and the next
  replay::TableConfig table;
  replay::TransitionSpec transitions;
  std::uint64_t seed = 1;
  std::filesystem::path spill_folder = {}; // of what does not fit into memory; empty: none
  std::uint64_t spill_bytes = 0;           // at most, on disk
};

struct ReplayState {
  static const char* name;
  ReplayOptions options;
  std::unique_ptr<replay::Shard> shard;
  std::uint64_t next_turn = 0;
  bool ticking = false;  // somebody waits with a deadline
  bool stopping = false; // those who wait are told so
  std::map<std::uint64_t, std::function<void()>>
      turns;            // deterministic: requests that came before their turn
  bool writing = false; // a checkpoint
  caf::error write_failure;
  std::vector<caf::typed_response_promise<done_atom>> waiting_for_write;
};

/// Owns one shard of the table. Inserts and samples wait in it for the rate limiter, at most until
/// shortly before their requests end, and are then answered with Fault::late and who waits for
/// what; on exit everyone who waits is answered with Fault::stopping.
ReplayActor::behavior_type replay_actor(ReplayActor::stateful_pointer<ReplayState> self,
                                        ReplayOptions options);

} // namespace troupe::actors
