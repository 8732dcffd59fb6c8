/// The head's loops while a run trains: free, in rounds, and on data.
#include "actors/run/head.hpp"
#include "learner/acting/collector.hpp"

namespace troupe::actors {

namespace {
constexpr int kConfirmations = 2; // of a reached goal, if evaluators are lost
} // namespace

void Head::train_free() {
  bool reached = false;
  while (!time_to_stop() && !reached)
    persist([&] {
      actors_.take_messages(kPoll);
      restart_lost();
      companion_.serve(progress_);
      if (!checkpoints_.writing())
        requests_.serve(progress_);
      if (const auto before = schedule_.updates();
          !schedule_.paused() && schedule_.extend_updates(progress_) > before)
        grant_learners();
      share_steps();
      maybe_evaluate();
      reached = reached_goal();
      if (!reached)
        maybe_checkpoint();
    });
}

/// Trains deterministically. In each round every environment makes the same number of steps with
/// the same parameters, items are inserted in the order of the actors, and then the learner makes
/// the updates that are due.
void Head::train_in_rounds() {
  while (!time_to_stop()) {
    restart_lost();
    if (!checkpoints_.writing())
      requests_.serve(progress_);
    if (held_) {
      actors_.take_messages(kPoll);
      continue;
    }
    const std::int64_t steps = schedule_.begin_round();
    const auto version = static_cast<std::uint64_t>(schedule_.updates());
    const auto environments = actors_.all(Role::environment);
    for (const auto& environment : environments)
      caf::anon_send(environment, grant_atom_v, steps, version, true);
    for (const auto& environment : environments) // one after another, in the order of the actors
      actors_.ask_all<std::int64_t>({environment}, RunActors::Wait::patient, kRequestDeadline,
                                    "waiting for an environment actor", flush_atom_v);
    if (schedule_.counts_items())
      refresh(); // gets the number of items
    schedule_.finish_round(progress_);
    grant_learners();
    wait_for_learners();
    refresh();
    actors_.take_messages(std::chrono::milliseconds(0));
    companion_.serve_and_wait(progress_);
    maybe_evaluate();
    if (reached_goal())
      return;
    maybe_checkpoint();
  }
  end_training();
}

/// Trains learners with their own data. Each evaluation is of the same update in every run, because
/// no learner goes beyond it.
void Head::train_on_data() {
  while (!time_to_stop())
    persist([&] {
      restart_lost();
      if (!checkpoints_.writing())
        requests_.serve(progress_);
      if (const auto before = schedule_.updates();
          !schedule_.paused() && schedule_.extend_updates(progress_) > before)
        grant_learners();
      actors_.take_messages(kPoll);
      maybe_checkpoint();
      if (!schedule_.evaluation_due(progress_))
        return;
      pause();
      const auto result = evaluations_.evaluate_learners(progress_, false);
      schedule_.evaluated(progress_);
      distributions_.begin(progress_);
      if (context_.callbacks.evaluated)
        context_.callbacks.evaluated(result);
      unpause();
    });
}

void Head::maybe_evaluate() {
  if (evaluations_.running() || !schedule_.evaluation_due(progress_))
    return;
  if (!config_.deterministic) {
    if (evaluations_.begin(progress_))
      distributions_.begin(progress_);
    return;
  }
  schedule_.evaluated(progress_);
  distributions_.begin(progress_);
  persist([this] {
    evaluations_.add(evaluations_.evaluate(config_.evaluation.episodes,
                                           static_cast<std::uint64_t>(schedule_.updates()),
                                           progress_, false));
  });
}

bool Head::reached_goal() {
  const double goal = config_.stop.evaluation_return;
  while (const auto result = evaluations_.next()) {
    if (context_.callbacks.evaluated)
      context_.callbacks.evaluated(*result);
    checkpoints_.note_evaluation(*result);
    hopeful_ = hopeful_ || (goal != 0 && mean(result->returns) >= goal);
  }
  if (!hopeful_)
    return false;
  if (confirmations_++ == kConfirmations) { // it may be what ends its evaluators
    context_.log("warning", "stop.evaluation_return is not confirmed: two evaluators were lost");
    hopeful_ = false;
    confirmations_ = 0;
    return false;
  }
  Evaluated sure;
  const auto confirm = [&] {
    // Not schedule_.updates(): for a pause a learner stops before it has made all of them.
    sure = evaluations_.evaluate(config_.evaluation.final_episodes,
                                 static_cast<std::uint64_t>(progress_.updates), progress_, false);
  };
  if (config_.in_rounds()) {
    refresh();
    persist(confirm);
  } else {
    pause();
    confirm();
  }
  hopeful_ = false; // a death before this leaves it to be confirmed
  confirmations_ = 0;
  if (mean(sure.returns) >= goal) {
    if (config_.in_rounds())
      end_training();
    context_.log("info", "goal reached: the mean return of " + std::to_string(sure.returns.size())
                             + " episodes is at least stop.evaluation_return");
    return true;
  }
  if (context_.callbacks.evaluated)
    context_.callbacks.evaluated(sure);
  if (!config_.in_rounds())
    unpause();
  return false;
}

void Head::maybe_checkpoint() {
  if (checkpoints_.due())
    begin_checkpoint();
}

void Head::begin_checkpoint() {
  distributions_.begin(progress_);
  if (!config_.in_rounds())
    pause();
  checkpoints_.begin(state_now());
  if (!config_.in_rounds())
    unpause();
}

} // namespace troupe::actors
