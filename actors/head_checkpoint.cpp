// What checkpoints hold of the head's own, and how a run begins with one, or with a learner that
// lives.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "actors/ask.hpp"
#include "actors/checkpointer_actor.hpp"
#include "actors/head.hpp"
#include "actors/roles.hpp"
#include "actors/strategies.hpp"

namespace troupe::actors {

namespace {
constexpr std::chrono::seconds kRescueDeadline{20}; // in which a learner that lives says its state
}

wire::RunState Head::state_now() {
  wire::RunState state = counters_;
  state.set_updates(!in_motion() ? updates_granted_ : state.updates());
  state.set_next_evaluation(next_evaluation_);
  state.set_lane_steps(lane_steps_);
  const int actors = count(Role::environment);
  if (actors != role_count(config_, Role::environment)) {
    state.set_environments(actors);
    state.set_environments_configured(config_.actors.environment);
  }
  int most = std::max(actors, before_.incarnations_size()); // with those scaled down by
  for (const auto& [key, incarnation] : incarnations_)
    if (key.first == Role::environment)
      most = std::max(most, key.second + 1);
  for (int i = 0; i < most; ++i) {
    const auto at = incarnations_.find({Role::environment, i});
    state.add_incarnations(at != incarnations_.end()         ? at->second
                           : i < before_.incarnations_size() ? before_.incarnations(i)
                                                             : 0);
  }
  state.set_shards(role_count(config_, Role::replay));
  state.set_replicas(config_.learner.replicas);
  state.set_environment_actors(actors);
  state.set_environments_per_actor(config_.actors.environments_per_actor);
  if (unsaved_evaluation_) {
    state.set_evaluated(true);
    state.set_evaluation_return(unsaved_evaluation_->first);
    state.set_evaluation_updates(unsaved_evaluation_->second);
  }
  return state;
}

/// One of the best so far is worth a checkpoint of its own, as soon as may be.
void Head::note_evaluation(const Evaluated& evaluated) {
  if (evaluated.returns.empty())
    return;
  const double mean = std::accumulate(evaluated.returns.begin(), evaluated.returns.end(), 0.0)
                      / static_cast<double>(evaluated.returns.size());
  if (std::isnan(mean))
    return;
  unsaved_evaluation_ = {mean, evaluated.updates};
  const auto best = static_cast<std::size_t>(config_.checkpoint.keep_best);
  if (best == 0)
    return;
  if (!best_returns_) {
    best_returns_.emplace();
    for (const auto& scored : scored_checkpoints(folder_ / "checkpoints"))
      if (scored.evaluation_return)
        best_returns_->push_back(*scored.evaluation_return);
  }
  const auto better = std::count_if(best_returns_->begin(), best_returns_->end(),
                                    [mean](double other) { return other > mean; });
  if (static_cast<std::size_t>(better) >= best)
    return;
  best_returns_->push_back(mean);
  checkpoint_wanted_ = true;
}

/// The final evaluation is of the last checkpoint's very parameters.
void Head::score_last(const RunResult& result) {
  const auto& returns = result.evaluation.returns;
  if (config_.workload || returns.empty() || result.checkpoint.empty())
    return;
  try {
    score_checkpoint(result.checkpoint, std::accumulate(returns.begin(), returns.end(), 0.0)
                                            / static_cast<double>(returns.size()));
    remove_surplus(folder_ / "checkpoints", config_.checkpoint.keep, config_.checkpoint.keep_best);
  } catch (const std::exception& e) {
    log("warning", std::string("the last checkpoint does not know its evaluation: ") + e.what());
  }
}

void Head::restore_replay() {
  const auto replay = resume_from_ / "replay";
  const std::size_t saved =
      std::filesystem::exists(replay) ? saved_shards(replay).size() : std::size_t{0};
  if (config_.workload)
    return;
  if (saved == 0)
    return log("warning", "the checkpoint has no items; replay starts empty");
  for (int i = 0; i < role_count(config_, Role::replay); ++i) {
    const auto words =
        ask<std::string>(actor(Role::replay, i), kStartDeadline, "restoring " + replay.string(),
                         load_atom_v, replay.string());
    if (!words.empty())
      log("warning", "replay shard " + std::to_string(i) + " " + words);
  }
  if (static_cast<int>(saved) != config_.replay.shards)
    log("info", "the items of " + std::to_string(saved) + " replay shards are dealt to "
                    + std::to_string(config_.replay.shards));
}

/// Whether an environment actor goes on where one of the checkpoint stopped.
bool Head::goes_on(std::int32_t environment) const {
  if (resume_from_.empty())
    return false;
  const int before = before_.environments_per_actor();
  return (before == 0 || before == config_.actors.environments_per_actor)
         && std::filesystem::exists(part_path(resume_from_, Role::environment, environment));
}

void Head::restore_environments() {
  int fresh = 0;
  const int count = this->count(Role::environment);
  for (int i = 0; i < count; ++i)
    if (goes_on(i))
      load(Role::environment, i, part_path(resume_from_, Role::environment, i));
    else
      ++fresh;
  const int before = before_.environment_actors();
  if (fresh > 0 || before > count)
    log("info", std::to_string(fresh) + " of " + std::to_string(count)
                    + " environment actors begin new episodes"
                    + (before > count ? "; " + std::to_string(before - count)
                                            + " of the checkpoint's are there no more, what they "
                                              "inserted stays"
                                      : std::string()));
}

/// Asks a learner that lives for its state, before learners that step together begin anew; then
/// ends them all. Where none lives they begin with what was written before, likewise where the
/// living have only just been started again: they may stand in their rendezvous.
void Head::rescue_learners() {
  std::set<Key> others; // who died meanwhile
  bool rescued = false;
  for (int i = 0; i < config_.learner.replicas && !rescued; ++i)
    for (int tries = 0; tries < 3 && !rescued && up_.contains({Role::learner, i})
                        && !returning_.contains({Role::learner, i});
         ++tries)
      try {
        const auto updates = ask<std::int64_t>(
            actor(Role::learner, i), kRescueDeadline,
            "asking learner " + std::to_string(i) + " for its state", save_atom_v);
        rescued = true;
        log("info", "learner " + std::to_string(i) + " lives: its state after "
                        + std::to_string(updates) + " updates is what others begin with");
      } catch (const Disturbed&) {
        others.merge(std::exchange(to_restart_, {}));
      } catch (const RunFailed& e) {
        if (!first_cause_.empty())
          throw;
        log("warning", e.what());
        break;
      }
  to_restart_.merge(others);
  if (!step_together(config_))
    return;
  for (int i = 0; i < config_.learner.replicas; ++i)
    if (const Key key{Role::learner, i};
        up_.erase(key) > 0 || returning_.contains(key)) { // they would wait for the lost one
      self_->send(*supervisor_, stop_atom_v, static_cast<std::uint8_t>(Role::learner), i);
      begin_anew(Role::learner, i);
    }
}

} // namespace troupe::actors
