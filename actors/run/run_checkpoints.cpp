#include "actors/run/run_checkpoints.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "actors/roles/checkpoint.hpp"
#include "actors/roles/files.hpp"
#include "actors/run/checkpointer_actor.hpp"
#include "actors/supervision/roles.hpp"

namespace troupe::actors {

namespace {

constexpr double kFirstMinutes = 0.25; // between the start of a new run and its first checkpoint

std::unique_ptr<CheckpointCopies> copies_of(const RunContext& context) {
  const auto& checkpoint = context.config.checkpoint;
  if (checkpoint.store.empty())
    return nullptr;
  const auto run = std::filesystem::absolute(context.folder).lexically_normal();
  const auto store = replay::parse_object_address(checkpoint.store, "checkpoint.store");
  return std::make_unique<CheckpointCopies>(
      run, CopyOptions{.run = below(store, run.parent_path().filename().string() + "/"
                                               + run.filename().string()),
                       .store = replay::store_options(),
                       .keep = checkpoint.keep,
                       .keep_best = checkpoint.keep_best});
}

} // namespace

double mean(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0)
                              / static_cast<double>(values.size());
}

RunCheckpoints::RunCheckpoints(const RunContext& context, RunActors& actors,
                               std::function<void(const std::string&)> on_failure)
    : context_(context),
      actors_(actors),
      on_failure_(std::move(on_failure)),
      copies_(copies_of(context)) {}

bool RunCheckpoints::due() {
  const bool first = !begun_ && context_.resume_from.empty();
  const double minutes = first ? std::min(context_.config.checkpoint.minutes, kFirstMinutes)
                               : context_.config.checkpoint.minutes;
  const bool by_clock =
      minutes > 0 && Clock::now() - last_ >= std::chrono::duration<double, std::ratio<60>>(minutes);
  if (by_clock && writing_) {
    context_.log("warning", "no checkpoint is started: the previous one is still being written; "
                            "raise checkpoint.minutes or use a faster disk");
    restart_clock();
  }
  return !writing() && (by_clock || wanted_ || interrupted_);
}

bool RunCheckpoints::writing() const {
  return writing_ || std::any_of(parts_.begin(), parts_.end(), [this](const auto& part) {
           const auto& [key, incarnation] = part.first;
           return actors_.incarnation(key) == incarnation; // otherwise it died
         });
}

void RunCheckpoints::capture(wire::RunState state) {
  if (unsaved_evaluation_) {
    state.set_evaluated(true);
    state.set_evaluation_return(unsaved_evaluation_->first);
    state.set_evaluation_updates(unsaved_evaluation_->second);
  }
  captured_evaluation_ = unsaved_evaluation_;
  // Not interrupted, because the checkpointer knows whether it needs the actor that has died.
  actors_.ask_all<done_atom>({caf::actor_cast<caf::actor>(actors_.checkpointer())},
                             RunActors::Wait::uninterrupted, 4 * kRequestDeadline,
                             "writing a checkpoint", save_atom_v, folder().string(), encode(state));
}

void RunCheckpoints::begin(wire::RunState state) {
  begun_ = true;
  problem_.clear();
  try {
    capture(std::move(state));
    writing_ = actors_.request<std::string>(
        actors_.checkpointer(), kWriteDeadline,
        [this](const std::string& path, const caf::error& error) {
          writing_.reset();
          if (error) // of Fault::failed: for example a full disk, which a repetition would not help
            on_failed(explain(context_.system, error), !(error == Fault::failed));
          else
            on_complete(path);
        },
        written_atom_v);
  } catch (const RunFailed& e) {
    on_failed(e.what(), false);
  } catch (const ActorLost&) {
    watch_parts();
    throw;
  }
  wanted_ = interrupted_ = false;
  restart_clock();
}

/// Makes writing() true until all actors have written their parts of a failed checkpoint.
void RunCheckpoints::watch_parts() {
  for (const Role role : {Role::replay, Role::learner})
    for (const ActorKey& key : actors_.keys(role)) {
      const std::pair part{key, actors_.incarnation(key)};
      parts_[part] = actors_.request<done_atom>(
          actors_.at(key), kWriteDeadline,
          [this, part](const done_atom&, const caf::error&) { parts_.erase(part); },
          written_atom_v);
    }
}

/// Whether that checkpoint succeeds makes no difference.
void RunCheckpoints::await_interrupted() {
  bool ended = false;
  const PendingRequest end = actors_.request<std::string>(
      actors_.checkpointer(), kWriteDeadline,
      [&ended](const std::string&, const caf::error&) { ended = true; }, written_atom_v);
  watch_parts();
  while (!ended || writing()) {
    actors_.take_messages(kPoll);
    if (!actors_.lost().empty())
      throw ActorLost();
  }
}

std::string RunCheckpoints::write(wire::RunState state) {
  await_interrupted();
  capture(std::move(state));
  on_complete(actors_.ask<std::string>(actors_.checkpointer(), kWriteDeadline,
                                       "writing a checkpoint", written_atom_v));
  return newest_;
}

void RunCheckpoints::on_complete(const std::string& path) {
  newest_ = path;
  written_ = Clock::now();
  best_returns_.reset();
  if (unsaved_evaluation_ == captured_evaluation_)
    unsaved_evaluation_.reset();
  if (copies_)
    copies_->offer(path);
}

void RunCheckpoints::on_failed(const std::string& problem, bool interrupted) {
  interrupted_ = interrupted;
  best_returns_.reset();
  problem_ = problem;
  watch_parts();
  on_failure_(problem);
  context_.log("error",
               problem + (interrupted ? "; the checkpoint is repeated" : "; training continues")
                   + "; the last complete checkpoint is " + (newest_.empty() ? "none" : newest_));
}

double RunCheckpoints::age_seconds() const {
  return newest_.empty() ? 0 : std::chrono::duration<double>(Clock::now() - written_).count();
}

std::filesystem::path RunCheckpoints::learner_state() const {
  const auto snapshots = numbered_folders(snapshot_folder(context_.config, Role::learner, 0));
  const std::filesystem::path checkpoint =
      newest_.empty() ? context_.resume_from : std::filesystem::path(newest_);
  if (snapshots.empty())
    return checkpoint;
  const auto saved = checkpoint.empty() ? -1 : read_manifest(checkpoint).state().updates();
  return snapshots.back().first >= saved ? snapshots.back().second : checkpoint;
}

void RunCheckpoints::note_evaluation(const Evaluated& evaluated) {
  const double value = mean(evaluated.returns);
  if (evaluated.returns.empty() || std::isnan(value))
    return;
  unsaved_evaluation_ = {value, evaluated.updates};
  const auto best = context_.config.checkpoint.keep_best;
  if (best == 0)
    return;
  if (!best_returns_) {
    best_returns_.emplace();
    for (const auto& scored : scored_checkpoints(folder()))
      if (scored.evaluation_return)
        best_returns_->push_back(*scored.evaluation_return);
  }
  if (std::count_if(best_returns_->begin(), best_returns_->end(),
                    [value](double other) { return other > value; })
      >= best)
    return;
  best_returns_->push_back(value);
  wanted_ = true;
}

void RunCheckpoints::score_last(const RunResult& result) {
  const auto& returns = result.evaluation.returns;
  const auto& config = context_.config;
  if (config.workload || returns.empty() || result.checkpoint.empty())
    return;
  try {
    score_checkpoint(result.checkpoint, mean(returns));
    if (copies_)
      copies_->offer_manifest(result.checkpoint);
    remove_surplus(folder(), config.checkpoint.keep, config.checkpoint.keep_best);
  } catch (const std::exception& e) {
    context_.log("warning", std::string("cannot write the final evaluation to the last "
                                        "checkpoint: ")
                                + e.what());
  }
}

std::int64_t RunCheckpoints::report_copies() {
  if (!copies_)
    return 0;
  for (const auto& message : copies_->messages()) {
    if (message.level == "error")
      on_failure_(message.text);
    context_.log(message.level, message.text);
  }
  return copies_->failed();
}

void RunCheckpoints::finish_copies(std::chrono::seconds deadline) {
  if (copies_)
    copies_->finish(deadline);
}

bool RunCheckpoints::continues(std::int32_t environment_actor) const {
  if (context_.resume_from.empty())
    return false;
  const int before = context_.before.environments_per_actor();
  return (before == 0 || before == context_.config.actors.environments_per_actor)
         && std::filesystem::exists(
             part_path(context_.resume_from, Role::environment, environment_actor));
}

void RunCheckpoints::succeed() {
  newest_ = context_.resume_from.string();
  if (!newest_.empty())
    actors_.send(actors_.checkpointer(), load_atom_v, newest_);
}

void RunCheckpoints::restore_servers() {
  for (int i = 0; i < role_count(context_.config, Role::parameter_server); ++i)
    load(actors_, {Role::parameter_server, i},
         part_path(context_.resume_from, Role::parameter_server, i));
}

void RunCheckpoints::restore(int environment_actors) {
  const auto& before = context_.before;
  restore_replay();
  for (int i = 0; i < context_.config.learner.replicas; ++i)
    load(actors_, {Role::learner, i}, context_.resume_from);
  restore_environments(environment_actors);
  actors_.send(actors_.checkpointer(), load_atom_v, context_.resume_from.string());
  context_.log("info",
               "resumed at " + std::to_string(before.updates()) + " updates"
                   + (!context_.config.plays() ? std::string()
                                               : ", " + std::to_string(before.environment_steps())
                                                     + " environment steps"));
}

void RunCheckpoints::restore_replay() {
  const auto replay = context_.resume_from / "replay";
  if (context_.config.workload)
    return;
  const std::size_t saved =
      std::filesystem::exists(replay) ? saved_shards(replay).size() : std::size_t{0};
  if (saved == 0 && !context_.config.recording.empty())
    return; // the shards have loaded the recording
  if (saved == 0)
    return context_.log("warning", "the checkpoint has no items; replay starts empty");
  for (int i = 0; i < role_count(context_.config, Role::replay); ++i) {
    const auto difference =
        actors_.ask<std::string>(actors_.at({Role::replay, i}), kStartDeadline,
                                 "restoring " + replay.string(), load_atom_v, replay.string());
    if (!difference.empty())
      context_.log("warning", "replay shard " + std::to_string(i) + " " + difference);
  }
  const int shards = context_.config.replay.shards;
  if (static_cast<int>(saved) != shards)
    context_.log("info", "the items of " + std::to_string(saved)
                             + " replay shards are redistributed to " + std::to_string(shards));
}

void RunCheckpoints::restore_environments(int environment_actors) {
  int fresh = 0;
  for (int i = 0; i < environment_actors; ++i)
    if (continues(i))
      load(actors_, {Role::environment, i}, part_path(context_.resume_from, Role::environment, i));
    else
      ++fresh;
  const int missing = std::max(0, context_.before.environment_actors() - environment_actors);
  if (fresh == 0 && missing == 0)
    return;
  std::string text = std::to_string(fresh) + " of " + std::to_string(environment_actors)
                     + " environment actors start new episodes";
  if (missing > 0)
    text +=
        "; the run has " + std::to_string(missing) + " fewer than the checkpoint; their items stay";
  context_.log("info", text);
}

} // namespace troupe::actors
