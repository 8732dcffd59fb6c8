#include <algorithm>
#include <utility>

#include "actors/ask.hpp"
#include "actors/control_actor.hpp"
#include "actors/files.hpp"
#include "actors/head.hpp"
#include "actors/roles.hpp"
#include "actors/strategies.hpp"

namespace troupe::actors {

namespace {

constexpr std::size_t kMostFailures = 10; // that status tells
constexpr std::size_t kMostRequests = 16; // that wait their turn

double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

} // namespace

/// What runs now: as many environment actors as the run was scaled to.
int Head::count(Role role) const {
  return role == Role::environment && !config_.workload ? environments_ : role_count(config_, role);
}

std::vector<std::int32_t> Head::indices(Role role) const {
  std::vector<std::int32_t> found;
  for (const auto& [key, who] : up_)
    if (key.first == role)
      found.push_back(key.second);
  return found;
}

void Head::note_failure(const std::string& what) {
  failures_.emplace_back(Clock::now(), what);
  if (failures_.size() > kMostFailures)
    failures_.pop_front();
}

/// The last of what status tells comes from here.
void Head::tell_control(const UpdatePtr& update) {
  if (!control_)
    return;
  wire::HeadReport told;
  told.set_folder(std::filesystem::absolute(folder_).string());
  told.set_phase(ending_ ? "ending" : !started_ ? "starting" : paused_ ? "paused" : "training");
  told.set_waits(asking_);
  told.set_age(seconds_since(began_));
  told.set_still(training_ ? seconds_since(still_since_) : 0);
  told.set_checkpoint(last_checkpoint_path_);
  told.set_checkpoint_age(last_checkpoint_path_.empty() ? 0 : seconds_since(checkpoint_written_));
  told.set_writing(writing_);
  told.set_environments(count(Role::environment));
  for (const auto& [when, what] : failures_) {
    auto& one = *told.add_failures();
    one.set_age(seconds_since(when));
    one.set_text(what);
  }
  self_->send(*control_, update_atom_v, update);
  self_->send(*control_, report_atom_v, encode(told));
}

std::string Head::standstill(const Update& update) const {
  const auto still =
      std::chrono::duration_cast<std::chrono::seconds>(last_movement_ - still_since_).count();
  std::string text = "nothing has moved for " + std::to_string(still) + " s";
  if (!asking_.empty())
    text += "; head: " + asking_;
  for (const auto& [role, index] : returning_)
    text += "; " + std::string(role_name(role)) + " " + std::to_string(index)
            + ": is being started again";
  for (const auto& line : update.waits)
    text += "; " + line;
  return text + (update.waits.empty() ? "; nobody says that it waits" : "");
}

void Head::take_request(std::uint64_t number, const Encoded& request, const Encoded& order) {
  const auto told = decode<wire::ControlRequest>(request);
  if (requests_.size() >= kMostRequests) {
    self_->send(*control_, answer_atom_v, number,
                std::string("the head has many requests already; ask again later"), std::string());
    return;
  }
  std::deque<Key> processes;
  const auto wanted = decode<wire::RestartOrder>(order);
  for (const auto& one : wanted.processes())
    processes.emplace_back(role_named(one.role()), one.index());
  const double patience = std::clamp(told.deadline_seconds(), 1.0, 86'400.0);
  requests_.push_back({.number = number,
                       .told = told,
                       .processes = std::move(processes),
                       .deadline = Clock::now()
                                   + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(patience))});
}

/// One at a time, while the run trains and no checkpoint is being written. Where somebody dies
/// meanwhile it is begun anew, with what is left of it.
void Head::serve_requests() {
  if (requests_.empty() || writing_)
    return;
  Request& request = requests_.front();
  std::string problem, text;
  if (Clock::now() > request.deadline)
    problem = "it was not done within the time that was given for it";
  else if (request.told.has_scale())
    problem = scale_to(request.told.scale().count(), text);
  else
    problem = restart_next(request, text);
  if (problem.empty() && !request.processes.empty())
    return; // there is more
  if (!text.empty())
    log("info", text + ", as was asked for");
  self_->send(*control_, answer_atom_v, request.number, problem, text);
  requests_.pop_front();
}

/// Gives what is in the way, or "".
std::string Head::scale_to(std::int32_t wanted, std::string& text) {
  pause();
  const auto problem =
      ask<std::string>(caf::actor_cast<caf::actor>(*supervisor_), kRequestDeadline,
                       "looking for room for environment actors", scale_atom_v, wanted);
  if (problem.empty()) {
    environments_ = wanted;
    for (std::int32_t i = 0; i < wanted; ++i)
      if (!up_.contains({Role::environment, i}))
        to_start_.insert({Role::environment, i});
    start_those();
    auto there = indices(Role::environment);
    for (auto at = there.rbegin(); at != there.rend() && *at >= wanted; ++at) // the newest first
      send_away({{Role::environment, *at}});
    for (const auto& environment : all(Role::environment))
      self_->send(environment, scale_atom_v, progress_.agent_steps, lanes());
    text = "environment actors: " + std::to_string(wanted);
  }
  unpause();
  return problem;
}

/// What a process comes back from, written while the run is paused: nothing is lost.
void Head::write_snapshot(Role role, std::int32_t index) {
  namespace fs = std::filesystem;
  const auto folder = snapshot_folder(config_, role, index);
  if (role == Role::replay && !folder.empty()) {
    const auto before = numbered_folders(folder);
    const auto next = (before.empty() ? 0 : before.back().first) + kSnapshotStride;
    const auto who = actor(role, index);
    ask<done_atom>(who, kRequestDeadline, "writing a snapshot", save_atom_v,
                   (folder / std::to_string(next)).string(), std::string());
    ask<done_atom>(who, kWriteDeadline, "writing a snapshot", written_atom_v);
  } else if (role == Role::learner && !folder.empty() && up_.contains({role, 0})) {
    ask<std::int64_t>(actor(role, 0), kRequestDeadline, "waiting for a learner", flush_atom_v);
    ask<std::int64_t>(actor(role, 0), kWriteDeadline, "writing a snapshot", save_atom_v);
  } else if (role == Role::parameter_server && !config_.learner.server_folder.empty()) {
    ask<done_atom>(actor(role, index), kWriteDeadline, "writing a snapshot", save_atom_v,
                   config_.learner.server_folder.string());
  }
}

/// Those at the head of the list that go and come together: one, or all learners that step
/// together. Gives what is in the way, or "".
std::string Head::restart_next(Request& request, std::string& text) {
  const auto role = request.processes.front().first;
  std::vector<Key> group{request.processes.front()};
  if (role == Role::learner && step_together(config_)) {
    group.clear();
    for (const auto index : indices(role))
      group.emplace_back(role, index);
  }
  if (auto problem = restart_together(group); !problem.empty())
    return problem;
  request.restarted += std::ssize(group);
  std::erase_if(request.processes, [&](const Key& key) {
    return std::find(group.begin(), group.end(), key) != group.end();
  });
  if (request.processes.empty())
    text = "processes started anew: " + std::to_string(request.restarted);
  return {};
}

/// Starts what is to be started; where one of them dies meanwhile, all is begun anew.
void Head::start_those() {
  restart_lost();
  if (!to_restart_.empty())
    throw Disturbed();
}

/// A snapshot that cannot be written keeps them from going, and harms nobody.
std::string Head::write_snapshots(const std::vector<Key>& group) {
  try {
    for (const auto& [role, index] : group)
      write_snapshot(role, index);
  } catch (const Disturbed&) {
    throw;
  } catch (const std::exception& e) {
    if (!first_cause_.empty())
      throw;
    return e.what();
  }
  return {};
}

/// They go at once: none of them sees another one missing.
void Head::send_away(const std::vector<Key>& group) {
  const auto number = [](Role role) { return static_cast<std::uint8_t>(role); };
  for (const Key& key : group) {
    up_.erase(key);
    steps_made_.erase(key);
    ++incarnations_[key];
    self_->send(*metrics_, lost_atom_v, number(key.first), key.second);
    self_->send(*checkpointer_, lost_atom_v, number(key.first), key.second);
    caf::anon_send(*supervisor_, leave_atom_v, number(key.first), key.second);
  }
  for (const auto& [role, index] : group)
    ask<done_atom>(caf::actor_cast<caf::actor>(*supervisor_), kRequestDeadline,
                   "waiting for a process to end", leave_atom_v, number(role), index);
}

/// All of one role. An environment actor goes while nothing of its is on its way, and the others go
/// on before it is back; what others need is back before they go on.
std::string Head::restart_together(std::vector<Key> group) {
  std::erase_if(group, [&](const Key& key) { return !up_.contains(key); }); // scaled meanwhile
  if (group.empty())
    return {};
  const Role role = group.front().first;
  if (role == Role::evaluator) {
    evaluating_ = false;
    evaluation_relay_ = {};
  } else {
    pause();
    if (auto problem = write_snapshots(group); !problem.empty()) {
      unpause();
      return "nothing was restarted: " + problem;
    }
  }
  to_start_.insert(group.begin(), group.end());
  send_away(group);
  if (role == Role::environment)
    unpause();
  start_those();
  if (role != Role::environment && role != Role::evaluator)
    unpause();
  return {};
}

} // namespace troupe::actors
