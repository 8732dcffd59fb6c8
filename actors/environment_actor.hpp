#pragma once

#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "actors/messages.hpp"
#include "actors/stopwatch.hpp"
#include "learner/collector.hpp"

namespace troupe::actors {

struct EnvironmentOptions {
  int actor = 0;
  std::uint64_t incarnation = 0;
  std::function<std::unique_ptr<learner::Collector>()> make; // called on the actor's own thread
  std::vector<ReplayActor> shards; // environment k of the run writes to shard k % size
  std::int64_t first_lane = 0;
  int insert_steps = 8; // agent steps per insertion and environment
  int window = 2;       // insertions in flight per environment before it waits
  bool pixels = false;  // every agent step draws a frame
};

struct EnvironmentState {
  static const char* name;
  EnvironmentOptions options;
  std::unique_ptr<learner::Collector> collector;
  std::int64_t granted = 0; // agent steps per environment
  std::uint64_t least_version = 0;
  bool hold = false;
  bool stepping = false; // a step message is on its way
  std::int64_t in_flight = 0;
  std::multiset<std::size_t> unacknowledged;  // shards of insertions in flight
  std::vector<std::deque<InsertionPtr>> held; // [environment] made and not yet sent
  std::vector<caf::typed_response_promise<std::int64_t>> flushing;
  std::vector<learner::EpisodeEnd> episodes; // not yet reported
  std::int64_t restored_agent_steps = 0;     // of the checkpoint that was loaded; not counted again
  std::int64_t restored_environment_steps = 0;
  Stopwatch watch;
};

/// Plays a pool of environments, with one inference per step of all of them, while it has steps
/// granted and insertions are acknowledged. Detached: it simulates on a thread of its own and those
/// of its pool. An environment that fails costs an episode and is told in the next report; when it
/// fails again and again the actor dies with Fault::failed and the environment's words, and its
/// supervisor starts another.
EnvironmentActor::behavior_type
environment_actor(EnvironmentActor::stateful_pointer<EnvironmentState> self,
                  EnvironmentOptions options);

} // namespace troupe::actors
