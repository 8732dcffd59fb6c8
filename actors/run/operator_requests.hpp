#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/run/lifecycle.hpp"
#include "actors/run/timeline_recording.hpp"

namespace troupe::actors {

/// Serves operators' requests to scale, pause or limit the run, write a checkpoint, record a
/// timeline, show an environment or restart processes. Serves one at a time, between steps of the
/// training loop, and not while a checkpoint is being written. A request that an actor's death
/// interrupts continues afterwards.
class OperatorRequests {
public:
  struct Training { // functions of the head
    std::function<void()> pause, unpause, cancel_evaluation, begin_checkpoint;
    std::function<void(bool paused)> hold; // unpause() has no effect until hold(false)
  };
  OperatorRequests(const RunContext& context, RunActors& actors, RunSchedule& schedule,
                   Lifecycle& lifecycle, const RunCheckpoints& checkpoints, Training training)
      : context_(context),
        actors_(actors),
        schedule_(schedule),
        lifecycle_(lifecycle),
        checkpoints_(checkpoints),
        training_(std::move(training)),
        timeline_(context, actors) {}

  void take(std::uint64_t number, const ProtoBytes& request, const ProtoBytes& order);
  /// Carries out the next part of the oldest request. Throws as RunActors::ask().
  void serve(const Progress& progress);

private:
  struct Request {
    std::uint64_t number = 0;
    wire::ControlRequest what;
    std::deque<ActorKey> processes = {}; // still to be restarted
    std::chrono::steady_clock::time_point deadline = {};
    std::int64_t restarted = 0;
    bool begun = false; // whether its checkpoint or picture was requested
    PendingRequest asked = {};
    std::optional<wire::LivePicture> picture = {};
    std::string no_picture = {}; // reason why there is no picture
  };
  // Each function returns the problem, or "".
  std::string scale(std::int32_t wanted, const Progress& progress, std::string& done);
  std::string hold(bool paused);
  std::string write_checkpoint(Request& request, std::string& done);
  std::string limit(const wire::ControlRequest::Limit& wanted, std::string& done);
  std::string show_environment(Request& request, wire::ControlDone& done);
  std::string give_up(); // returns the reason
  std::string record_timeline(const Request& request, const Progress& progress, std::string& done);
  std::string restart_next(Request& request, std::string& done);
  std::string restart(std::vector<ActorKey> group);
  std::string write_snapshots(const std::vector<ActorKey>& group);
  void write_snapshot(const ActorKey& key);
  void start_added();
  void send_away(const std::vector<ActorKey>& group);

  const RunContext& context_;
  RunActors& actors_;
  RunSchedule& schedule_;
  Lifecycle& lifecycle_;
  const RunCheckpoints& checkpoints_;
  Training training_;
  TimelineRecording timeline_;
  std::deque<Request> requests_;
};

} // namespace troupe::actors
