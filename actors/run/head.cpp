#include "actors/run/head.hpp"

#include <algorithm>

#include "actors/run/control_actor.hpp"
#include "actors/supervision/head_record.hpp"
#include "actors/supervision/roles.hpp"

namespace troupe::actors {

namespace {
constexpr double kShareAfter = 5;                 // seconds without progress
constexpr double kStalledAfter = 600;             // seconds without progress after stop.minutes
constexpr std::chrono::minutes kCopyDeadline{30}; // of the last checkpoint to checkpoint.store
} // namespace

Head::Head(const RunContext& context)
    : context_(context),
      config_(context.config),
      schedule_(context.config, context.before, context.succeeds != nullptr),
      monitor_(context),
      progress_(monitor_.progress()),
      actors_(
          context,
          {.updated = [this](const UpdatePtr& update,
                             std::int64_t refused) { on_update(update, refused); },
           .lost =
               [this](const ActorKey& key, const std::string& what) {
                 monitor_.note_failure(what);
                 schedule_.forget(key);
                 if (key.first == Role::evaluator)
                   evaluations_.cancel();
               },
           .requested = [this](std::uint64_t number, const ProtoBytes& request,
                               const ProtoBytes& order) { requests_.take(number, request, order); },
           .starting = [this] { write_record(); },
           .stalled =
               [this] {
                 return out_of_time(config_, progress_)
                        && monitor_.still_seconds() >= kStalledAfter;
               }}),
      checkpoints_(context, actors_,
                   [this](const std::string& problem) { monitor_.note_failure(problem); }),
      lifecycle_(context, actors_, schedule_, checkpoints_, progress_),
      evaluations_(context, actors_, [this](const Progress& begun) { schedule_.evaluated(begun); }),
      distributions_(context, actors_),
      requests_(context, actors_, schedule_, lifecycle_, checkpoints_,
                {.pause = [this] { pause(); },
                 .unpause = [this] { unpause(); },
                 .cancel_evaluation = [this] { evaluations_.cancel(); },
                 .begin_checkpoint = [this] { begin_checkpoint(); },
                 .hold = [this](bool paused) { hold(paused); }}),
      companion_(context, actors_) {}

RunResult Head::run() {
  RunResult result;
  try {
    if (context_.succeeds)
      take_over();
    else
      start();
    if (config_.workload)
      train_on_data();
    else if (config_.deterministic)
      train_in_rounds();
    else
      train_free();
    finish(result);
  } catch (const NothingToTakeOver&) {
    context_.nodes_wait = true;
    throw;
  } catch (const StoppedAtStart&) {
    result.interrupted = true;
    result.progress = progress_;
    result.checkpoint = context_.resume_from;
  } catch (const std::exception& e) {
    result.error = actors_.first_cause().empty() ? e.what() : actors_.first_cause();
    result.progress = progress_;
    result.checkpoint = checkpoints_.newest();
  }
  return result;
}

void Head::start() {
  const int environments = schedule_.count(Role::environment);
  const bool resumes = !context_.resume_from.empty();
  if (environments != role_count(config_, Role::environment))
    context_.log("info", "environment actors: " + std::to_string(environments)
                             + ", as the run was scaled; its configuration has "
                             + std::to_string(config_.actors.environment));
  remove_head_record(context_.folder);
  if (const auto folder = snapshot_folder(config_, Role::learner, 0); !folder.empty())
    std::filesystem::remove_all(folder); // left by an earlier head
  actors_.start_services(config_.workload ? config_.actors.environment : environments);
  lifecycle_.start(Role::replay);
  lifecycle_.start(Role::parameter_server);
  if (resumes)
    persist([this] { checkpoints_.restore_servers(); });
  for (const Role role : {Role::learner, Role::environment, Role::evaluator})
    lifecycle_.start(role);
  if (resumes)
    persist([&] {
      checkpoints_.restore(environments);
      if (config_.on_policy())
        refresh();
    });
  companion_.start();
  if (config_.companion)
    persist([this] { // the first report precedes the first episode
      refresh();     // gets the counters of a resumed run
      companion_.ask(progress_);
    });
  begin_training();
  checkpoints_.restart_clock(); // only here: one that a death interrupted is repeated at once
  started_ = true;
}

bool Head::time_to_stop() const {
  return actors_.stopping() || schedule_.complete(progress_);
}

void Head::grant_learners() {
  for (const auto& learner : actors_.all(Role::learner))
    actors_.send(learner, grant_atom_v, schedule_.updates());
}

/// Waits until each learner has made all granted updates, but not more than `most`.
void Head::wait_for_learners(std::int64_t most) {
  actors_.ask_all<std::int64_t>(actors_.all(Role::learner), RunActors::Wait::patient,
                                kRequestDeadline, "waiting for a learner", flush_atom_v, most);
}

/// Lowers the learners' grants for a pause, during which the rate limiters do not hold them back.
/// Does not ask for counters, because a learner may be unable to answer until the shards are open;
/// the last ones are at most as high.
void Head::hold_learners() {
  if (const auto most = schedule_.updates_before_pause(progress_); most != kAllGranted)
    for (const auto& learner : actors_.all(Role::learner))
      caf::anon_send(caf::actor_cast<LearnerActor>(learner), flush_atom_v, most);
}

void Head::grant_environments() {
  for (const auto& key : actors_.keys(Role::environment))
    caf::anon_send(actors_.at(key), grant_atom_v, schedule_.steps(key.second, progress_),
                   std::uint64_t{0}, false);
}

/// Lets each environment actor make all remaining steps. Otherwise an actor that has made its share
/// of the steps makes no more, and the run would stall if the others wait for samples that need new
/// items, or if steps were lost with a dead actor.
void Head::share_steps() {
  if (schedule_.training() && monitor_.still_seconds() >= kShareAfter && schedule_.share_steps())
    grant_environments();
}

void Head::begin_training() {
  schedule_.begin_training(progress_);
  grant_learners(); // publishes the policy
  actors_.send(actors_.metrics(), grant_atom_v, true);
  if (!config_.deterministic)
    grant_environments();
}

void Head::end_training() {
  actors_.send(actors_.metrics(), grant_atom_v, false);
  schedule_.end_training();
  refresh();
}

void Head::pause() {
  schedule_.pause();
  // Environments stop before shards accept insertions without limit. Otherwise an actor on a
  // disconnected host would insert long after its connection is back.
  const auto environments = actors_.all(Role::environment);
  actors_.ask_all<done_atom>(environments, RunActors::Wait::patient, kRequestDeadline,
                             "pausing an environment actor", grant_atom_v, std::int64_t{0},
                             std::uint64_t{0}, false);
  hold_learners();
  actors_.ask_all<done_atom>(actors_.all(Role::replay), RunActors::Wait::patient, kRequestDeadline,
                             "opening a shard", open_atom_v,
                             true); // insertions in flight may arrive
  for (const auto& key : actors_.keys(Role::environment))
    schedule_.paused_at(
        key.second,
        actors_.ask_all<std::int64_t>({actors_.at(key)}, RunActors::Wait::patient, kRequestDeadline,
                                      "waiting for an environment actor", flush_atom_v)[0]);
  refresh(); // counts the items that have arrived
  wait_for_learners(schedule_.updates_before_pause(progress_));
  end_training();
}

void Head::unpause() {
  if (held_)
    return;
  actors_.ask_all<done_atom>(actors_.all(Role::replay), RunActors::Wait::patient, kRequestDeadline,
                             "closing a shard", open_atom_v, false);
  begin_training();
}

/// Between two rounds all actors already stand still.
void Head::hold(bool paused) {
  held_ = paused;
  if (config_.in_rounds())
    actors_.send(actors_.metrics(), grant_atom_v, !paused);
  else if (paused)
    pause();
  else if (schedule_.paused())
    unpause();
  tell_control(); // before the operator gets the answer and may send another request
}

void Head::restart_lost() {
  lifecycle_.restart_lost();
  if (!lifecycle_.learners_came_back() || !config_.on_policy())
    return;
  refresh();
  schedule_.learners_came_back(progress_);
  grant_learners();
}

/// Restarts dead actors, then ends a pause of the training that was interrupted. Shards that were
/// opened for the pause close first, because surviving actors must not insert without limit
/// meanwhile.
void Head::recover() {
  const auto paused = [this] { return started_ && schedule_.paused(); };
  for (;;)
    try {
      if (paused())
        for (const auto& shard : actors_.all(Role::replay))
          caf::anon_send(shard, open_atom_v, false);
      restart_lost();
      if (paused() && actors_.lost().empty())
        unpause();
      if (actors_.lost().empty())
        return;
    } catch (const ActorLost&) { // another actor died
    }
}

wire::RunState Head::state_now() {
  wire::RunState state = monitor_.counters();
  schedule_.write(state);
  actors_.write(state);
  return state;
}

void Head::finish(RunResult& result) {
  ending_ = true;
  result.interrupted = actors_.stopping();
  const auto pause_training = [this] {
    if (!schedule_.paused() && !config_.in_rounds())
      pause();
  };
  while (checkpoints_.writing()) // the last one, for which the run did not wait
    actors_.take_messages(kPoll);
  // Together, because a learner may make further updates after a death.
  persist([&] {
    pause_training();
    refresh();
    result.checkpoint = checkpoints_.write(state_now());
    if (result.interrupted)
      return;
    const auto updates = std::max<std::int64_t>(0, progress_.updates);
    result.evaluation =
        config_.workload
            ? evaluations_.evaluate_learners(progress_, true)
            : evaluations_.evaluate(config_.evaluation.final_episodes,
                                    static_cast<std::uint64_t>(updates), progress_, true);
  });
  if (context_.callbacks.evaluated) {
    while (const auto late = evaluations_.next()) // ended after training
      context_.callbacks.evaluated(*late);
    if (!result.interrupted)
      context_.callbacks.evaluated(result.evaluation);
  }
  if (!result.interrupted) {
    monitor_.hold_back(true); // the final evaluation is the last row of the run's metrics
    checkpoints_.score_last(result);
  }
  finish_copies();
  result.progress = progress_;
  result.progress.failed_copies = checkpoints_.report_copies();
}

/// Waits until the last checkpoint is in checkpoint.store, at most kCopyDeadline.
void Head::finish_copies() {
  const auto deadline = std::chrono::steady_clock::now() + kCopyDeadline;
  const auto left = [&] {
    return std::max(std::chrono::steady_clock::duration::zero(),
                    deadline - std::chrono::steady_clock::now());
  };
  try {
    while (checkpoints_.copying() && left().count() > 0)
      actors_.take_messages(kPoll);
  } catch (const ActorLost&) { // its actor is no longer needed
  }
  checkpoints_.finish_copies(std::chrono::duration_cast<std::chrono::seconds>(left()));
}

/// Waits for new counters. on_update() is called before the answer arrives.
void Head::refresh() {
  // Patient, because the actor itself waits as long for one that is short of the processor.
  actors_.ask_all<UpdatePtr>({caf::actor_cast<caf::actor>(actors_.metrics())},
                             RunActors::Wait::patient, kRequestDeadline, "asking for counters",
                             report_atom_v);
}

void Head::on_update(const UpdatePtr& update, std::int64_t refused) {
  companion_.add(*update);
  if (update->record) {
    metrics_record_ = update->record;
    write_record();
  }
  if (monitor_.take(*update, refused, checkpoints_.report_copies(), schedule_.training()))
    context_.log("warning", monitor_.standstill(*update, actors_.asking(), lifecycle_.returning()));
  if (!actors_.control())
    return;
  actors_.send(*actors_.control(), update_atom_v, update);
  tell_control();
}

/// Reports what operators see of the head.
void Head::tell_control() {
  wire::HeadReport report;
  monitor_.write(report, schedule_.training());
  report.set_folder(std::filesystem::absolute(context_.folder).string());
  report.set_phase(ending_                       ? "ending"
                   : !started_                   ? "starting"
                   : held_ || schedule_.paused() ? "paused"
                                                 : "training");
  report.set_waits(actors_.asking());
  report.set_checkpoint(checkpoints_.newest());
  report.set_checkpoint_age(checkpoints_.age_seconds());
  report.set_writing(checkpoints_.writing());
  report.set_failed_copies(progress_.failed_copies);
  report.set_refused_connections(progress_.refused_connections);
  report.set_held(held_);
  report.set_environments(schedule_.count(Role::environment));
  report.set_restarts(context_.deployment.head_restarts);
  report.set_took_over(took_over_);
  report.set_had_processes(had_processes_);
  if (!config_.workload && config_.recording.empty() && !config_.on_policy()) {
    const auto& ratio = schedule_.ratio();
    wire::ControlRequest::Limit now;
    now.set_samples_per_insert(ratio ? ratio->samples_per_insert
                                     : config_.replay.samples_per_insert);
    now.set_error_buffer(ratio ? ratio->error_buffer : config_.replay.error_buffer);
    report.set_samples_per_insert(now.samples_per_insert());
    report.set_error_buffer(shard_table(limited(config_, now)).limiter.error_buffer);
    report.set_limit_changed(ratio.has_value());
  }
  actors_.send(*actors_.control(), report_atom_v, encode(report));
}

} // namespace troupe::actors
