#include "actors/run/run_schedule.hpp"

#include <algorithm>
#include <utility>

#include "actors/supervision/roles.hpp"
#include "actors/supervision/strategies.hpp"

namespace troupe::actors {

namespace {
constexpr std::int64_t kRoundUpdates = 100; // per round, without environment actors
constexpr double kPaceSeconds = 0.25;       // minimum time over which a pace is measured
} // namespace

bool out_of_time(const RunConfig& config, const Progress& now) {
  return config.stop.minutes > 0 && now.training_seconds >= 60 * config.stop.minutes;
}

RunSchedule::RunSchedule(const RunConfig& config, const wire::RunState& before, bool begun)
    : config_(config),
      before_(before),
      asynchronous_(step_alone(config)),
      environments_(config.actors.environment),
      begun_(begun),
      updates_(before.updates()),
      due_from_items_(before.due_from_items()),
      due_from_updates_(before.due_from_updates()),
      lane_steps_(before.lane_steps()),
      next_evaluation_(before.next_evaluation() > 0 ? before.next_evaluation()
                                                    : config.evaluation.period),
      seen_seconds_(before.training_seconds()),
      seen_updates_(before.updates()) {
  if (before.environments() > 0 && !config.workload
      && before.environments_configured() == config.actors.environment)
    environments_ = before.environments();
  if (before.samples_per_insert() > 0 && !config.workload && !config.on_policy()
      && before.samples_per_insert_configured() == config.replay.samples_per_insert
      && before.error_buffer_configured() == config.replay.error_buffer)
    ratio_ = Ratio{.samples_per_insert = before.samples_per_insert(),
                   .error_buffer = before.error_buffer()};
  if (config.in_rounds() && config.plays() && !config.on_policy())
    if (const auto items = items_of_rounds(before.inserts() - before.earlier_inserts());
        updates_due(items) != before.updates()) { // other settings, which apply to new items only
      due_from_items_ = items;
      due_from_updates_ = before.updates();
    }
  const auto period = config.evaluation.period;
  if (period <= 0)
    return;
  const auto clock = config.plays() ? before.environment_steps() : before.updates();
  const auto next = (clock / period + 1) * period;
  if (!config.plays() && next_evaluation_ <= clock) // of another period
    next_evaluation_ = next;
  else if (!begun) // the counters are those of the checkpoint, whose period may have been longer
    next_evaluation_ = std::min(next_evaluation_, next);
}

int RunSchedule::count(Role role) const {
  return role == Role::environment && !config_.workload ? environments_ : role_count(config_, role);
}

std::int64_t RunSchedule::lanes() const {
  return std::int64_t{environments_} * config_.actors.environments_per_actor;
}

bool RunSchedule::complete(const Progress& now) const {
  const bool done = config_.plays() ? now.environment_steps >= config_.stop.environment_steps
                                    : now.updates >= config_.stop.updates;
  return done || out_of_time(config_, now);
}

std::int64_t RunSchedule::inserts(const Progress& now) const {
  return now.inserts - before_.earlier_inserts();
}

std::int64_t RunSchedule::samples(const Progress& now) const {
  return now.samples - before_.earlier_samples();
}

void RunSchedule::begin_training(const Progress& now) {
  training_ = begun_ = true;
  paused_ = false;
  updates_ = std::max(updates_, now.updates);
  samples_from_ = samples(now);
  updates_from_ = updates_;
}

void RunSchedule::learners_came_back(const Progress& now) {
  if (!config_.on_policy())
    return;
  samples_from_ = samples(now);
  updates_from_ = updates_ = now.updates;
}

std::int64_t RunSchedule::extend_updates(const Progress& now) {
  if (config_.on_policy()) {
    if (inserts(now) < std::exchange(inserts_seen_, inserts(now))) { // a shard was restored
      samples_from_ = samples(now);
      updates_from_ = updates_;
    }
    const std::int64_t items = rows_per_replica(config_) * config_.learner.replicas;
    const std::int64_t batches = (inserts(now) - samples_from_) / items;
    const std::int64_t uses = config_.agent->storage().item_uses;
    return updates_ = std::max(updates_, updates_from_ + uses * batches);
  }
  if (config_.plays() && inserts(now) < config_.replay.minimum_items)
    return updates_;
  // All granted updates are made even after the time limit, so a slow learner gets few.
  const double fast = pace(now);
  const double most = config_.workload ? 2 : 32;
  const std::int64_t made = updates_made(now);
  const bool known = made > before_.updates();
  const auto ahead = static_cast<std::int64_t>(fast + (known ? std::clamp(fast, 2.0, most) : most));
  return grant(made + std::min<std::int64_t>(ahead, 10'000));
}

/// A slow or dead first replica must not hold back replicas that do not wait for it.
std::int64_t RunSchedule::updates_made(const Progress& now) const {
  return asynchronous_ ? std::max(now.updates, now.most_updates) : now.updates;
}

/// Returns updates per second: the greater of the latest and the usual pace, so that a learner that
/// becomes faster does not wait for grants.
double RunSchedule::pace(const Progress& now) {
  if (const double passed = now.training_seconds - seen_seconds_; passed >= kPaceSeconds) {
    const std::int64_t made = updates_made(now);
    latest_pace_ = std::max(0.0, static_cast<double>(made - seen_updates_) / passed);
    seen_seconds_ = now.training_seconds;
    seen_updates_ = made;
  }
  return std::max(latest_pace_, now.updates_per_second);
}

std::int64_t RunSchedule::grant(std::int64_t wanted) {
  if (!config_.plays())
    wanted = std::min(wanted, config_.stop.updates);
  if ((config_.workload || config_.in_rounds()) && !config_.plays()
      && config_.evaluation.period > 0)
    wanted = std::min(wanted, next_evaluation_);
  return updates_ = std::max(updates_, wanted);
}

std::int64_t RunSchedule::begin_round() {
  lane_steps_ += kInsertSteps;
  return lane_steps_ - before_.lane_steps();
}

std::int64_t RunSchedule::finish_round(const Progress& now) {
  if (config_.on_policy())
    return extend_updates(now);
  if (!config_.plays())
    return grant(now.updates + kRoundUpdates);
  return grant(updates_due(items_of_rounds(inserts(now))));
}

/// Returns the number of items that the rounds so far have completed. `inserts`: those counted, if
/// counts_items().
std::int64_t RunSchedule::items_of_rounds(std::int64_t inserts) const {
  if (counts_items())
    return inserts;
  const learner::Storage storage = config_.agent->storage();
  const bool sequences = storage.sequence_steps > 0;
  const std::int64_t length = sequences ? storage.sequence_steps : config_.replay.n_step;
  const std::int64_t period = sequences ? storage.sequence_period : 1;
  return lanes() * (std::max<std::int64_t>(0, lane_steps_ - length) / period);
}

std::int64_t RunSchedule::updates_due(std::int64_t items) const {
  const double ratio = ratio_ ? ratio_->samples_per_insert : config_.replay.samples_per_insert;
  const auto from = std::max(due_from_items_, config_.replay.minimum_items);
  const auto ready = std::max<std::int64_t>(0, items - from);
  return due_from_updates_
         + static_cast<std::int64_t>(static_cast<double>(ready) * ratio
                                     / static_cast<double>(config_.agent->batch_size()));
}

std::int64_t RunSchedule::updates_before_pause(const Progress& now) const {
  if (config_.on_policy())
    return kAllGranted;
  if (asynchronous_) {
    const bool awaited =
        !config_.plays()
        && (now.updates >= config_.stop.updates || (config_.workload && evaluation_due(now)));
    return awaited ? kAllGranted : 0;
  }
  return config_.plays() && count(Role::learner) == 1
             ? std::min(updates_, updates_due(inserts(now)))
             : kAllGranted;
}

std::int64_t RunSchedule::steps(std::int32_t environment_actor, const Progress& now) const {
  const auto share = [&](std::int64_t left, std::int64_t sharers) {
    const std::int64_t per_step = sharers * config_.environment.action_repeat;
    return std::max<std::int64_t>(0, (left + per_step - 1) / per_step);
  };
  const std::int64_t all = config_.stop.environment_steps;
  if (shared_)
    return share(all - before_.environment_steps(), 1);
  const auto made = steps_made_.find(environment_actor);
  return (made == steps_made_.end() ? 0 : made->second)
         + share(all - std::max(now.environment_steps, before_.environment_steps()), lanes());
}

bool RunSchedule::share_steps() {
  return !std::exchange(shared_, true);
}

void RunSchedule::paused_at(std::int32_t environment_actor, std::int64_t steps) {
  steps_made_[environment_actor] = steps;
}

void RunSchedule::forget(const ActorKey& key) {
  if (key.first == Role::environment)
    steps_made_.erase(key.second);
}

std::int64_t RunSchedule::steps_before(const Progress& now) const {
  return std::max(now.agent_steps, before_.agent_steps()) / lanes();
}

std::int64_t RunSchedule::evaluation_clock(const Progress& now) const {
  return config_.plays() ? now.environment_steps : now.updates;
}

bool RunSchedule::evaluation_due(const Progress& now) const {
  return config_.evaluation.period > 0 && evaluation_clock(now) >= next_evaluation_
         && (config_.plays() || now.updates < config_.stop.updates);
}

void RunSchedule::evaluated(const Progress& now) {
  while (next_evaluation_ <= evaluation_clock(now))
    next_evaluation_ += config_.evaluation.period;
}

void RunSchedule::write(wire::RunState& state) const {
  if (config_.in_rounds())
    state.set_updates(updates_);
  state.set_next_evaluation(next_evaluation_);
  state.set_lane_steps(lane_steps_);
  state.set_due_from_items(due_from_items_);
  state.set_due_from_updates(due_from_updates_);
  const int actors = count(Role::environment);
  if (actors != role_count(config_, Role::environment)) {
    state.set_environments(actors);
    state.set_environments_configured(config_.actors.environment);
  }
  if (ratio_) {
    state.set_samples_per_insert(ratio_->samples_per_insert);
    state.set_error_buffer(ratio_->error_buffer);
    state.set_samples_per_insert_configured(config_.replay.samples_per_insert);
    state.set_error_buffer_configured(config_.replay.error_buffer);
  }
  state.set_shards(role_count(config_, Role::replay));
  state.set_replicas(config_.learner.replicas);
  state.set_environment_actors(actors);
  state.set_environments_per_actor(config_.actors.environments_per_actor);
}

} // namespace troupe::actors
