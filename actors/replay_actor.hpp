#pragma once

#include <map>
#include <memory>
#include <string>

#include "actors/messages.hpp"
#include "replay/shard.hpp"

namespace troupe::actors {

struct ReplayOptions {
  int shard = 0;
  int replicas = 1; // learners that sample
  bool in_turn =
      false; // deterministic: requests are served by number, then replica, whatever their arrival
  replay::TableConfig table;
  replay::TransitionSpec transitions;
  std::uint64_t seed = 1;
};

struct ReplayState {
  static const char* name;
  ReplayOptions options;
  std::unique_ptr<replay::Shard> shard;
  std::uint64_t next_turn = 0;
  std::map<std::uint64_t, std::function<void()>>
      turns; // deterministic: requests that came before their turn
};

/// Owns one shard of the table. Inserts and samples wait in it for the rate limiter; on exit
/// everyone who waits is answered with Fault::stopping.
ReplayActor::behavior_type replay_actor(ReplayActor::stateful_pointer<ReplayState> self,
                                        ReplayOptions options);

} // namespace troupe::actors
