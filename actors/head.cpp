#include "actors/head.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "actors/ask.hpp"
#include "actors/roles.hpp"

namespace troupe::actors {

namespace {

constexpr std::chrono::seconds kStandstill{30};
constexpr std::chrono::seconds kSteps{5}; // without a movement, until steps are shared anew

double mean(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0)
                              / static_cast<double>(values.size());
}

} // namespace

std::int64_t Head::lanes() const {
  return std::int64_t{environments_} * config_.actors.environments_per_actor;
}

bool Head::time_to_stop() const {
  const bool done = config_.workload
                        ? progress_.updates >= config_.stop.updates
                        : progress_.environment_steps >= config_.stop.environment_steps;
  if (stopping() || done)
    return true;
  return config_.stop.minutes > 0 && progress_.training_seconds >= 60 * config_.stop.minutes;
}

void Head::grant_learners(std::int64_t updates) {
  updates_granted_ = updates;
  for (const auto& learner : all(Role::learner))
    self_->send(learner, grant_atom_v, updates);
}

/// Until all updates that were granted are made.
void Head::wait_for_learners() {
  for (const auto& learner : all(Role::learner))
    ask<std::int64_t>(learner, kRequestDeadline, "waiting for a learner", flush_atom_v);
}

void Head::extend_grants() {
  if (paused_ || progress_.inserts < config_.replay.minimum_items)
    return;
  const auto window = static_cast<std::int64_t>(32 + progress_.updates_per_second);
  const std::int64_t wanted = progress_.updates + std::min<std::int64_t>(window, 10'000);
  if (wanted <= updates_granted_)
    return;
  grant_learners(wanted);
}

/// Each environment actor has its part of the run's steps. Where some have done theirs and others
/// wait for samples that only the items of the former would allow, or where steps were lost with
/// the dead, nothing moves: then each may do all that are left.
void Head::share_steps() {
  if (!training_ || each_may_do_all_ || Clock::now() - last_movement_ < kSteps)
    return;
  each_may_do_all_ = true;
  grant_environments();
}

void Head::grant_environments() {
  for (const auto index : indices(Role::environment))
    caf::anon_send(actor(Role::environment, index), grant_atom_v, steps_granted(index),
                   std::uint64_t{0}, false);
}

void Head::pause() {
  paused_ = true;
  // They stand still before shards take all that comes: one on a host that was cut off would hear
  // of the pause long after its way to the shards is whole again.
  for (const auto& environment : all(Role::environment))
    caf::anon_send(environment, grant_atom_v, std::int64_t{0}, std::uint64_t{0}, false);
  for (const auto& environment : all(Role::environment))
    ask<done_atom>(environment, kRequestDeadline, "pausing an environment actor", grant_atom_v,
                   std::int64_t{0}, std::uint64_t{0}, false);
  for (const auto& shard : all(Role::replay)) // what is on its way may arrive, whatever the ratio
    ask<done_atom>(shard, kRequestDeadline, "opening a shard", open_atom_v, true);
  for (const auto index : indices(Role::environment))
    steps_made_[{Role::environment, index}] =
        ask<std::int64_t>(actor(Role::environment, index), kRequestDeadline,
                          "waiting for an environment actor", flush_atom_v);
  wait_for_learners();
  self_->send(*metrics_, grant_atom_v, false);
  training_ = false;
  refresh();
}

void Head::unpause() {
  for (const auto& shard : all(Role::replay))
    ask<done_atom>(shard, kRequestDeadline, "closing a shard", open_atom_v, false);
  begin_training();
}

void Head::train_free() {
  bool reached = false;
  while (!time_to_stop() && !reached)
    persist([&] {
      take_messages(kPoll);
      restart_lost();
      serve_requests();
      extend_grants();
      share_steps();
      maybe_evaluate();
      reached = reached_goal();
      if (!reached)
        maybe_checkpoint();
    });
}

/// Deterministic: environments and learner take turns. Each round every environment plays the same
/// number of steps with the same parameters, insertions go in by order of actor, then the learner
/// makes the updates that are due.
void Head::train_in_rounds() {
  while (!time_to_stop()) {
    restart_lost();
    lane_steps_ += kInsertSteps;
    const auto version = static_cast<std::uint64_t>(updates_granted_);
    for (const auto& environment : all(Role::environment))
      caf::anon_send(environment, grant_atom_v, lane_steps_ - before_.lane_steps(), version, true);
    for (const auto& environment : all(Role::environment))
      ask<std::int64_t>(environment, kRequestDeadline, "waiting for an environment actor",
                        flush_atom_v);
    const std::int64_t behind = lanes() * config_.replay.n_step + config_.replay.minimum_items;
    const auto ready =
        static_cast<double>(std::max<std::int64_t>(0, lane_steps_ * lanes() - behind));
    const auto due = static_cast<std::int64_t>(ready * config_.replay.samples_per_insert
                                               / static_cast<double>(config_.agent.batch_size));
    updates_granted_ = std::max(updates_granted_, due);
    grant_learners(updates_granted_);
    wait_for_learners();
    refresh();
    take_messages(std::chrono::milliseconds(0));
    maybe_evaluate();
    if (reached_goal())
      return;
    maybe_checkpoint();
  }
  self_->send(*metrics_, grant_atom_v, false);
  training_ = false;
  refresh();
}

void Head::maybe_evaluate() {
  if (config_.evaluation.period <= 0 || evaluating_
      || progress_.environment_steps < next_evaluation_)
    return;
  while (next_evaluation_ <= progress_.environment_steps)
    next_evaluation_ += config_.evaluation.period;
  if (config_.deterministic) {
    evaluations_.push_back(
        evaluate(config_.evaluation.episodes, static_cast<std::uint64_t>(updates_granted_), false));
    return;
  }
  if (up_.contains({Role::evaluator, 0})) {
    evaluating_ = true;
    evaluation_relay_ = Relay(ask_later(system_, self_, actor(Role::evaluator, 0), config_,
                                        config_.evaluation.episodes, 0));
  }
}

bool Head::reached_goal() {
  bool hopeful = false;
  for (; !evaluations_.empty(); evaluations_.pop_front()) {
    if (callbacks_.evaluated)
      callbacks_.evaluated(evaluations_.front());
    note_evaluation(evaluations_.front());
    hopeful = config_.stop.evaluation_return > 0
              && mean(evaluations_.front().returns) >= config_.stop.evaluation_return;
  }
  if (!hopeful)
    return false;
  if (!config_.deterministic)
    pause();
  else
    refresh();
  const Evaluated sure = evaluate(config_.evaluation.final_episodes,
                                  static_cast<std::uint64_t>(updates_granted_), false);
  if (mean(sure.returns) >= config_.stop.evaluation_return) {
    if (config_.deterministic) {
      self_->send(*metrics_, grant_atom_v, false);
      training_ = false;
    }
    log("info", "goal reached: mean return of " + std::to_string(sure.returns.size())
                    + " episodes is at least stop.evaluation_return");
    return true;
  }
  if (callbacks_.evaluated)
    callbacks_.evaluated(sure);
  if (!config_.deterministic)
    unpause();
  return false;
}

void Head::maybe_checkpoint() {
  const bool due =
      config_.checkpoint.minutes > 0
      && Clock::now() - last_checkpoint_
             >= std::chrono::duration<double, std::ratio<60>>(config_.checkpoint.minutes);
  if (!due && (!checkpoint_wanted_ || writing_))
    return;
  if (writing_) {
    log("warning", "no checkpoint is begun: the one before it is still being written; raise "
                   "checkpoint.minutes or use a faster disk");
    last_checkpoint_ = Clock::now();
    return;
  }
  if (in_motion())
    pause();
  try {
    capture_checkpoint();
    writing_ = true;
    writing_relay_ = Relay(tell_when_written(system_, self_, *checkpointer_));
  } catch (const RunFailed& e) {
    on_written("", e.what());
  }
  checkpoint_wanted_ = false;
  last_checkpoint_ = Clock::now();
  if (in_motion())
    unpause();
}

void Head::on_written(const std::string& path, const std::string& problem) {
  writing_ = false;
  if (problem.empty()) {
    last_checkpoint_path_ = path;
    checkpoint_written_ = Clock::now();
  } else {
    note_failure(problem);
    log("error", problem + "; training goes on, the last complete checkpoint is "
                     + (last_checkpoint_path_.empty() ? "none" : last_checkpoint_path_));
  }
}

void Head::capture_checkpoint() {
  refresh();
  ask<done_atom>(caf::actor_cast<caf::actor>(*checkpointer_), 4 * kRequestDeadline,
                 "writing a checkpoint", save_atom_v, (folder_ / "checkpoints").string(),
                 encode(state_now()));
  unsaved_evaluation_.reset();
}

std::string Head::written_checkpoint() {
  last_checkpoint_path_ = ask<std::string>(caf::actor_cast<caf::actor>(*checkpointer_),
                                           kWriteDeadline, "writing a checkpoint", written_atom_v);
  checkpoint_written_ = Clock::now();
  return last_checkpoint_path_;
}

Evaluated Head::evaluate(int episodes, std::uint64_t minimum_version, bool final) {
  wire::EvaluationRequest request;
  request.set_episodes(episodes);
  request.set_seed(evaluation_seed(config_));
  request.set_minimum_version(minimum_version);
  const auto encoded = ask<Encoded>(actor(Role::evaluator, 0), episodes * kRequestDeadline,
                                    "evaluating", evaluate_atom_v, encode(request));
  const auto result = decode<wire::EvaluationResult>(encoded);
  return {.environment_steps = progress_.environment_steps,
          .updates = static_cast<std::int64_t>(result.version()),
          .training_seconds = progress_.training_seconds,
          .returns = {result.returns().begin(), result.returns().end()},
          .final = final};
}

void Head::finish(RunResult& result) {
  ending_ = true;
  result.interrupted = stopping();
  while (writing_) // the last but one, which the run did not wait for
    take_messages(kPoll);
  persist([&] {
    if (in_motion() && !paused_)
      pause();
    capture_checkpoint();
    result.checkpoint = written_checkpoint();
  });
  if (!result.interrupted) {
    persist([&] {
      if (in_motion() && !paused_)
        pause();
      const auto updates = std::max<std::int64_t>(0, progress_.updates);
      result.evaluation = config_.workload ? evaluate_learners(true)
                                           : evaluate(config_.evaluation.final_episodes,
                                                      static_cast<std::uint64_t>(updates), true);
    });
    if (callbacks_.evaluated)
      callbacks_.evaluated(result.evaluation);
    score_last(result);
  }
  result.progress = progress_;
}

RunResult Head::run() {
  RunResult result;
  try {
    start_services();
    start_role(Role::replay);
    start_role(Role::parameter_server);
    if (!resume_from_.empty())
      restore_servers();
    start_role(Role::learner);
    start_role(Role::environment);
    start_role(Role::evaluator);
    if (!resume_from_.empty())
      restore();
    begin_training();
    last_checkpoint_ = Clock::now(); // not at each: one that a death disturbed is begun anew
    started_ = true;
    if (config_.workload)
      train_on_data();
    else if (config_.deterministic)
      train_in_rounds();
    else
      train_free();
    finish(result);
  } catch (const std::exception& e) {
    result.error = first_cause_.empty() ? e.what() : first_cause_;
    result.progress = progress_;
    result.checkpoint = last_checkpoint_path_;
  }
  return result;
}

void Head::take_messages(std::chrono::milliseconds at_most) {
  bool more = true;
  while (more) {
    self_->receive(
        [&](update_atom, const UpdatePtr& update) { on_update(update); },
        [&](started_atom, std::uint8_t role, std::int32_t index, const caf::actor& who) {
          up_[{static_cast<Role>(role), index}] = who;
        },
        [&](lost_atom, std::uint8_t role, std::int32_t index, const std::string& reason,
            bool may_restart) { on_lost(static_cast<Role>(role), index, reason, may_restart); },
        [&](answer_atom, std::uint64_t question) { answers_.insert(question); },
        [&](stop_atom) {
          if (!std::exchange(told_to_stop_, true))
            log("info", "stopping after a checkpoint, as was asked for");
        },
        [&](control_atom, std::uint64_t number, const Encoded& request, const Encoded& order) {
          take_request(number, request, order);
        },
        [&](written_atom, const std::string& path, const std::string& problem) {
          on_written(path, problem);
        },
        [&](evaluate_atom, const Encoded& encoded) {
          evaluating_ = false;
          const auto result = decode<wire::EvaluationResult>(encoded);
          if (result.returns_size() > 0)
            evaluations_.push_back({.environment_steps = progress_.environment_steps,
                                    .updates = static_cast<std::int64_t>(result.version()),
                                    .training_seconds = progress_.training_seconds,
                                    .returns = {result.returns().begin(), result.returns().end()}});
        },
        caf::after(at_most) >> [&] { more = false; });
    at_most = std::chrono::milliseconds(0);
  }
  if (!first_cause_.empty())
    throw RunFailed(first_cause_);
}

void Head::on_update(const UpdatePtr& update) {
  if (update->number > newest_update_) { // one in the mailbox may be older than an answer
    newest_update_ = update->number;
    progress_ = update->progress;
    counters_ = update->state;
  }
  for (const std::string& words : update->warnings)
    log("warning", words);
  if (callbacks_.episode)
    for (const auto& [episode_return, length] : update->episodes)
      callbacks_.episode(progress_.environment_steps, episode_return, length);
  const auto now = Clock::now();
  if (callbacks_.progress && now - last_report_ >= std::chrono::milliseconds(500)) {
    last_report_ = now;
    callbacks_.progress(progress_);
  }
  const std::int64_t moved = progress_.agent_steps + progress_.updates;
  if (moved != moved_ || !training_) {
    moved_ = moved;
    last_movement_ = still_since_ = now;
  } else if (now - last_movement_ > kStandstill) {
    last_movement_ = now;
    log("warning", standstill(*update));
  }
  tell_control(update);
}

} // namespace troupe::actors
