#pragma once

#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "actors/protocol/messages.hpp"
#include "actors/protocol/stopwatch.hpp"
#include "actors/roles/live_picture.hpp"
#include "actors/roles/policy_turns.hpp"
#include "actors/roles/role_histograms.hpp"
#include "actors/roles/shard_endpoints.hpp"
#include "actors/roles/span_recorder.hpp"
#include "env/make/changing_environment.hpp"
#include "learner/acting/collector.hpp"
#include "replay/service/shard_client.hpp"

namespace troupe::actors {

struct EnvironmentOptions {
  int actor = 0;
  std::uint64_t incarnation = 0;
  std::function<std::unique_ptr<learner::Collector>()> make; // called on the actor's own thread
  std::vector<ReplayActor> shards; // environment k of the run inserts into shard k % size
  ShardEndpoints remote = {};      // used instead of `shards` if it has endpoints
  replay::TransitionSpec transitions = {};
  std::int64_t first_lane = 0;
  int insert_steps = 8;       // agent steps per insertion and environment
  int window = 2;             // insertions in flight per environment before it waits
  bool pixels = false;        // every agent step draws a frame
  std::string camera = "0";   // for live pictures
  PolicyTurns turns{0, 1, 1}; // for agents whose newest policy must play each sequence
  std::shared_ptr<env::TaskOptions> task = nullptr; // set if the options change during the run
};

struct EnvironmentState {
  static const char* name;
  EnvironmentOptions options;
  std::unique_ptr<learner::Collector> collector;
  SceneRenderer scene;      // of the collector's simulations
  std::int64_t granted = 0; // agent steps per environment
  std::uint64_t least_version = 0;
  bool hold = false;
  bool stepping = false;                      // a step message is on its way
  std::vector<replay::ShardClient> clients;   // for shards in other processes
  std::size_t waited_for = 0;                 // index of the client whose socket was polled last
  std::multiset<std::size_t> unacknowledged;  // the shard of each insertion in flight
  std::vector<std::deque<InsertionPtr>> held; // [environment], made but not sent yet
  std::vector<caf::typed_response_promise<std::int64_t>> flushing;
  std::vector<learner::EpisodeEnd> episodes; // not yet reported
  std::int64_t restored_agent_steps = 0;     // from the loaded checkpoint; not counted again
  std::int64_t restored_environment_steps = 0;
  ActionHistograms actions{{}};
  SpanRecorder spans;
  Stopwatch watch{spans.timeline()};
};

/// Steps a pool of environments, with one inference per step for all of them, while it has granted
/// steps and acknowledged insertions. Detached: simulates on its own thread and its pool's threads.
/// A failure of an environment costs one episode and appears in the next report. After repeated
/// failures the actor dies with Fault::failed and the environment's error, and its supervisor
/// restarts it.
EnvironmentActor::behavior_type
environment_actor(EnvironmentActor::stateful_pointer<EnvironmentState> self,
                  EnvironmentOptions options);

} // namespace troupe::actors
