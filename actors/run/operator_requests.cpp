#include "actors/run/operator_requests.hpp"

#include <algorithm>
#include <cstdio>

#include "actors/roles/files.hpp"
#include "actors/run/checkpointer_actor.hpp"
#include "actors/supervision/roles.hpp"
#include "actors/supervision/strategies.hpp"

namespace troupe::actors {

namespace {
constexpr std::size_t kMostRequests = 16; // in the queue
constexpr std::chrono::seconds kPictureDeadline{10};
constexpr std::int64_t kSnapshotStride = 1000; // a shard numbers its own snapshots in between
} // namespace

void OperatorRequests::take(std::uint64_t number, const ProtoBytes& request,
                            const ProtoBytes& order) {
  const auto what = decode<wire::ControlRequest>(request);
  if (requests_.size() >= kMostRequests) {
    actors_.send(*actors_.control(), answer_atom_v, number,
                 std::string("the head has too many requests already; ask again later"),
                 ProtoBytes());
    return;
  }
  std::deque<ActorKey> processes;
  const auto wanted = decode<wire::RestartOrder>(order);
  for (const auto& process : wanted.processes())
    processes.emplace_back(role_named(process.role()), process.index());
  using Clock = std::chrono::steady_clock;
  const std::chrono::duration<double> patience(std::clamp(what.deadline_seconds(), 1.0, 86'400.0));
  requests_.push_back(
      {.number = number,
       .what = what,
       .processes = std::move(processes),
       .deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(patience)});
}

void OperatorRequests::serve(const Progress& progress) {
  if (requests_.empty())
    return;
  Request& request = requests_.front();
  std::string problem;
  wire::ControlDone answer;
  std::string& done = *answer.mutable_text();
  if (std::chrono::steady_clock::now() > request.deadline)
    problem = give_up();
  else if (request.what.has_scale())
    problem = scale(request.what.scale().count(), progress, done);
  else if (request.what.has_pause())
    done = hold(request.what.pause());
  else if (request.what.has_checkpoint())
    problem = write_checkpoint(request, done);
  else if (request.what.has_timeline())
    problem = record_timeline(request, progress, done);
  else if (request.what.has_limit())
    problem = limit(request.what.limit(), done);
  else if (request.what.has_picture())
    problem = show_environment(request, answer);
  else
    problem = restart_next(request, done);
  if (problem.empty() && done.empty() && !answer.has_picture())
    return; // the request has further parts
  if (!done.empty())
    context_.log("info", done + ", as requested");
  actors_.send(*actors_.control(), answer_atom_v, request.number, problem, encode(answer));
  requests_.pop_front();
}

std::string OperatorRequests::scale(std::int32_t wanted, const Progress& progress,
                                    std::string& done) {
  training_.pause();
  const auto problem =
      actors_.ask<std::string>(actors_.supervisor(), kRequestDeadline,
                               "looking for room for environment actors", scale_atom_v, wanted);
  if (problem.empty()) {
    schedule_.scale(wanted);
    for (std::int32_t i = 0; i < wanted; ++i)
      if (!actors_.is_up({Role::environment, i}))
        lifecycle_.add({Role::environment, i});
    start_added();
    auto running = actors_.keys(Role::environment);
    for (auto key = running.rbegin(); key != running.rend() && key->second >= wanted; ++key)
      send_away({*key}); // newest first
    for (const auto& environment : actors_.all(Role::environment))
      actors_.send(environment, scale_atom_v, progress.agent_steps,
                   std::int64_t{schedule_.count(Role::environment)}
                       * context_.config.actors.environments_per_actor);
    done = "environment actors: " + std::to_string(wanted);
  }
  training_.unpause();
  return problem;
}

std::string OperatorRequests::limit(const wire::ControlRequest::Limit& wanted, std::string& done) {
  schedule_.ratio() = {.samples_per_insert = wanted.samples_per_insert(),
                       .error_buffer = wanted.error_buffer()};
  for (const ActorKey& key : actors_.keys(Role::replay))
    lifecycle_.limit(key);
  char text[96];
  std::snprintf(text, sizeof text, "rate limiter of %d shards: %g samples per insert",
                static_cast<int>(actors_.keys(Role::replay).size()), wanted.samples_per_insert());
  done = text;
  return {};
}

std::string OperatorRequests::give_up() {
  if (!timeline_.begun())
    return "the request was not done within its deadline";
  timeline_.cancel();
  return "the learners did not make the updates within the deadline, so no timeline was written; "
         "`troupe status` shows what they wait for; fewer --updates take less time";
}

std::string OperatorRequests::record_timeline(const Request& request, const Progress& progress,
                                              std::string& done) {
  if (!timeline_.begun())
    timeline_.begin(request.what.timeline());
  return timeline_.serve(progress, done);
}

/// Requests a picture from the actor, which draws it between two of its steps.
std::string OperatorRequests::show_environment(Request& request, wire::ControlDone& done) {
  if (!request.begun) {
    request.begun = true;
    const ActorKey key{Role::environment, request.what.picture().actor()};
    if (!actors_.is_up(key))
      return "actor=" + std::to_string(key.second) + ": the run has "
             + std::to_string(actors_.keys(Role::environment).size())
             + " environment actors, counted from 0, and this one is not up";
    request.asked = actors_.request<ProtoBytes>(
        actors_.at(key), kPictureDeadline,
        [this, &request](const ProtoBytes& picture, const caf::error& error) {
          try {
            if (error)
              request.no_picture = explain(context_.system, error);
            else
              request.picture = decode<wire::LivePicture>(picture);
          } catch (const std::exception& e) {
            request.no_picture = e.what();
          }
        },
        picture_atom_v, encode(request.what.picture()));
    return {};
  }
  if (request.picture)
    *done.mutable_picture() = std::move(*request.picture);
  return request.no_picture;
}

/// Returns a description of what was done.
std::string OperatorRequests::hold(bool paused) {
  training_.hold(paused);
  return paused ? "training pauses until `troupe pause --off`" : "training continues";
}

/// Starts a checkpoint; the request is done when it is complete.
std::string OperatorRequests::write_checkpoint(Request& request, std::string& done) {
  if (!request.begun || checkpoints_.interrupted()) {
    training_.begin_checkpoint();
    request.begun = true; // not earlier: after a death the request begins again
    return {};
  }
  if (checkpoints_.problem().empty())
    done = "checkpoint " + checkpoints_.newest();
  return checkpoints_.problem();
}

/// Writes the state from which a process restarts. The run is paused, so nothing is lost.
void OperatorRequests::write_snapshot(const ActorKey& key) {
  const auto [role, index] = key;
  const auto folder = snapshot_folder(context_.config, role, index);
  const auto& servers = context_.config.learner.server_folder;
  const std::string what = "writing a snapshot";
  if (role == Role::replay && !folder.empty()) {
    const auto before = numbered_folders(folder);
    const auto next = (before.empty() ? 0 : before.back().first) + kSnapshotStride;
    const auto who = actors_.at(key);
    actors_.ask<done_atom>(who, kRequestDeadline, what, save_atom_v,
                           (folder / std::to_string(next)).string(), std::string());
    actors_.ask<done_atom>(who, kWriteDeadline, what, written_atom_v);
  } else if (role == Role::learner && !folder.empty() && actors_.is_up({role, 0})) {
    const auto who = actors_.at({role, 0});
    actors_.ask<std::int64_t>(who, kRequestDeadline, "waiting for a learner", flush_atom_v,
                              kAllGranted);
    actors_.ask<std::int64_t>(who, kWriteDeadline, what, save_atom_v);
  } else if (role == Role::parameter_server && !servers.empty()) {
    actors_.ask<done_atom>(actors_.at(key), kWriteDeadline, what, save_atom_v, servers.string());
  }
}

/// Writes the group's snapshots. If one cannot be written, the group does not leave and the run
/// continues.
std::string OperatorRequests::write_snapshots(const std::vector<ActorKey>& group) {
  try {
    for (const auto& key : group)
      write_snapshot(key);
  } catch (const ActorLost&) {
    throw;
  } catch (const std::exception& e) {
    if (!actors_.first_cause().empty())
      throw;
    return e.what();
  }
  return {};
}

/// Restarts the first of the request's processes; with a learner, all learners that step with it.
std::string OperatorRequests::restart_next(Request& request, std::string& done) {
  const auto role = request.processes.front().first;
  const bool together = role == Role::learner && step_together(context_.config);
  const std::vector<ActorKey> group =
      together ? actors_.keys(role) : std::vector<ActorKey>{request.processes.front()};
  if (auto problem = restart(group); !problem.empty())
    return problem;
  request.restarted += std::ssize(group);
  std::erase_if(request.processes, [&](const ActorKey& key) {
    return std::find(group.begin(), group.end(), key) != group.end();
  });
  if (request.processes.empty())
    done = "processes restarted: " + std::to_string(request.restarted);
  return {};
}

void OperatorRequests::start_added() {
  lifecycle_.restart_lost();
  if (!actors_.lost().empty())
    throw ActorLost();
}

/// Stops all actors of the group at once, so that none of them notices that another one is missing.
void OperatorRequests::send_away(const std::vector<ActorKey>& group) {
  for (const ActorKey& key : group) {
    actors_.forget(key, false);
    schedule_.forget(key);
    caf::anon_send(actors_.supervisor(), leave_atom_v, key.first, key.second);
  }
  for (const auto& [role, index] : group)
    actors_.ask<done_atom>(actors_.supervisor(), kRequestDeadline, "waiting for a process to end",
                           leave_atom_v, role, index);
}

/// Restarts a group of actors of one role. An environment actor leaves when none of its insertions
/// is in flight, and training continues before it is back. Training waits for actors of other
/// roles.
std::string OperatorRequests::restart(std::vector<ActorKey> group) {
  std::erase_if(group, [&](const ActorKey& key) { return !actors_.is_up(key); }); // scaled down
  if (group.empty())
    return {};
  const Role role = group.front().first;
  if (role == Role::evaluator) {
    training_.cancel_evaluation();
  } else {
    training_.pause();
    if (auto problem = write_snapshots(group); !problem.empty()) {
      training_.unpause();
      return "nothing was restarted: " + problem;
    }
  }
  for (const ActorKey& key : group)
    lifecycle_.add(key);
  send_away(group);
  if (role == Role::environment)
    training_.unpause();
  start_added();
  if (role != Role::environment && role != Role::evaluator)
    training_.unpause();
  return {};
}

} // namespace troupe::actors
