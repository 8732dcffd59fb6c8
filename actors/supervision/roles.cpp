#include "actors/supervision/roles.hpp"

#include <algorithm>

#include "actors/roles/environment_actor.hpp"
#include "actors/roles/evaluator_actor.hpp"
#include "actors/roles/learner_actor.hpp"
#include "actors/roles/parameter_server_actor.hpp"
#include "actors/roles/replay_actor.hpp"
#include "actors/supervision/strategies.hpp"
#include "learner/acting/collector.hpp"
#include "learner/acting/transition_spec.hpp"
#include "learner/agents/learners/trained_replica.hpp"
#include "replay/table/faded_selector.hpp"

namespace troupe::actors {

namespace {

constexpr double kNoRatio = 1e15; // samples: an error buffer that no run exceeds

/// Streams into which the run's seed is split; the collector uses 1 and 2.
enum SeedUse : std::uint64_t { kShardSeed = 3, kLearnerSeed = 4, kResetSeed = 9 };

/// Returns the number of environments of the whole run, after scaling.
std::int64_t lanes_of_run(const RunConfig& config, const RoleWiring& wiring) {
  const int actors = wiring.environments > 0 ? wiring.environments : config.actors.environment;
  return std::int64_t{actors} * config.actors.environments_per_actor;
}

std::unique_ptr<learner::Collector>
make_collector(const RunConfig& config, const RoleWiring& wiring,
               const std::shared_ptr<const env::TaskOptions>& task) {
  const std::int64_t per_actor = config.actors.environments_per_actor;
  // There are no spare environments if each one occupies a server in another process, or would have
  // begun an episode before its options change.
  const bool alone = config.environment.task == "remote" || task;
  const learner::CollectorConfig collector{
      .seed = config.seed,
      .incarnation = wiring.incarnation,
      .first_lane = wiring.index * per_actor,
      .total_lanes = lanes_of_run(config, wiring),
      .steps_before = wiring.steps_before,
      .random_steps = config.random_steps(),
      .environments = config.actors.environments_per_actor,
      .threads = config.actors.threads_per_actor,
      .own_deadlines = env::own_deadlines(config.environment),
      .spares = alone ? std::optional(false) : std::nullopt,
  };
  env::EnvironmentConfig environment = config.environment;
  environment.frame_stack = 1; // frames are stacked in replay chunks
  return std::make_unique<learner::Collector>(
      collector,
      [&](int) -> std::unique_ptr<env::Environment> {
        if (task)
          return std::make_unique<env::ChangingEnvironment>(environment, task);
        return env::make_environment(environment);
      },
      config.agent->make_policy(wiring.transitions), wiring.transitions);
}

bool takes_priorities(const RunConfig& config) {
  return replay::uses_priorities(replay::selector_named(config.replay.sampler))
         || replay::uses_priorities(replay::selector_named(config.replay.remover));
}

replay::SelectorConfig selector(const std::string& name, double exponent) {
  return {.kind = replay::selector_named(name), .exponent = exponent};
}

replay::SelectorConfig sampler(const RunConfig::Replay& config) {
  replay::SelectorConfig made = selector(config.sampler, config.priority_exponent);
  made.fade = replay::fade_of_shard(config.priority_fade, config.shards);
  made.least_fade = config.least_priority_fade;
  return made;
}

/// If the newest policy must play, each update's parameters are published.
int publish_period(const RunConfig& config) {
  return !config.workload && config.agent->storage().newest_policy ? 1
                                                                   : config.learner.publish_period;
}

PrefetchOptions prefetch_options(const RunConfig& config, const RoleWiring& wiring) {
  if (config.workload)
    return {};
  const learner::Storage storage = config.agent->storage();
  // Gathers one batch at a time if each batch depends on the priorities of the previous one, or
  // must be new.
  const bool one = (config.deterministic && takes_priorities(config)) || storage.on_policy;
  return {.rows = rows_per_replica(config),
          .item_uses = storage.item_uses,
          .ahead = one ? 0 : config.learner.prefetch,
          .threads = config.learner.gather_threads,
          .shards = wiring.shards,
          .remote = wiring.remote_shards,
          .transitions = wiring.transitions,
          .feedback = takes_priorities(config),
          .weighted = config.replay.sampler == "prioritized",
          .importance_exponent = config.replay.importance_exponent,
          .importance_updates = config.replay.importance_updates};
}

LearnerOptions learner_options(const RunConfig& config, const RoleWiring& wiring) {
  return {
      .replica = wiring.index,
      .own_data = static_cast<bool>(config.workload),
      .threads = config.learner.threads,
      .deterministic = config.deterministic,
      .publish_period = publish_period(config),
      .batches = prefetch_options(config, wiring),
      .seed = learner::split_seed(config.seed,
                                  {kLearnerSeed, static_cast<std::uint64_t>(wiring.index)}),
      .make =
          [config, transitions = wiring.transitions] {
            if (config.workload)
              return config.workload();
            // One seed for all replicas, so that they reset to equal networks.
            return learner::trained_replica(
                config.learner.training, learner::split_seed(config.seed, {kResetSeed}),
                [=] { return config.agent->make_replica(transitions); });
          },
      .strategy = wiring.strategy,
      .device = wiring.device,
      .local_id = wiring.local_id,
      .learning_rates = config.learner.training.learning_rate.made(),
      .incarnation = wiring.incarnation,
      .parameters = wiring.parameters,
      .snapshot_folder = snapshot_folder(config, Role::learner, 0),
      .snapshot_period = std::chrono::duration<double>(config.supervision.snapshot_seconds),
      // Longer than the detection of a loss takes.
      .stranded_period = std::chrono::duration<double>(2 * config.supervision.lost_seconds),
  };
}

learner::ParameterServerHostOptions host_options(const RunConfig& config,
                                                 const RoleWiring& wiring) {
  learner::ParameterServerHostOptions options{.server = server_options(config),
                                              .shard = wiring.index,
                                              .shards = config.learner.parameter_servers};
  if (!wiring.endpoint.empty())
    options.endpoint = wiring.endpoint;
  if (!config.learner.server_folder.empty())
    options.snapshot = server_file(config.learner.server_folder, wiring.index);
  return options;
}

} // namespace

int role_count(const RunConfig& config, Role role) {
  if (config.workload && role != Role::learner && role != Role::parameter_server)
    return 0;
  switch (role) {
  case Role::replay:
    return config.replay.shards;
  case Role::parameter_server:
    return has_servers(config) ? config.learner.parameter_servers : 0;
  case Role::learner:
    return config.learner.replicas;
  case Role::environment:
    return config.actors.environment;
  case Role::evaluator:
    return 1;
  }
  return 0;
}

std::filesystem::path snapshot_folder(const RunConfig& config, Role role, std::int32_t index) {
  if (config.supervision.folder.empty() || (role == Role::replay && !config.recording.empty()))
    return {}; // a shard of a recording loads the recording again
  if (role == Role::replay)
    return config.supervision.folder / ("shard-" + std::to_string(index));
  return config.supervision.folder / "learner";
}

replay::TransitionSpec stored_transitions(const RunConfig& config,
                                          const env::EnvironmentSpec& environment) {
  auto stored =
      learner::stored_by(*config.agent, learner::transition_spec(environment, config.replay.n_step,
                                                                 config.replay.discount));
  const auto& hindsight = config.replay.hindsight;
  if (hindsight.goals == 0)
    return stored;
  const env::GoalSpec& goal = environment.goal;
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument("replay.hindsight.goals is " + std::to_string(hindsight.goals)
                                + ", but " + why + ", or leave the block replay.hindsight out");
  };
  if (!goal.outcome)
    refuse("environment " + environment.name
           + " does not say what reaching a goal is worth; choose a task with goals (tag goals in "
             "`troupe list environments --json`), without pixels, observations, normalization, "
             "frame_stack, action_repeat, reward_scale and reward_clip");
  if (environment.episode_steps == 0)
    refuse("the episodes of environment " + environment.name
           + " may last forever, but they are stored whole; set environment.time_limit");
  stored.hindsight = {.goals = hindsight.goals,
                      .strategy = replay::goal_strategy_named(hindsight.strategy),
                      .achieved = goal.achieved,
                      .desired = goal.desired,
                      .size = goal.size,
                      .episode_steps = environment.episode_steps};
  return stored;
}

replay::TableConfig shard_table(const RunConfig& config) {
  const auto& r = config.replay;
  if (!config.recording.empty())
    return {.max_items = std::max<std::int64_t>(1, r.capacity_items / r.shards),
            .max_bytes = std::max<std::int64_t>(1, r.capacity_bytes / r.shards),
            .sampler = sampler(r),
            .insert_at_maximum = takes_priorities(config),
            .compression = replay::compression_named(r.compression),
            .limiter = {.kind = replay::RateLimiterKind::minimum_size, .minimum_items = 1}};
  if (config.agent->storage().on_policy) {
    // One batch waits while the learner uses another one, and a round of insertions may be added.
    const std::int64_t lanes =
        std::int64_t{config.actors.environment} * config.actors.environments_per_actor;
    const std::int64_t items = rows_per_replica(config) * config.learner.replicas;
    const std::int64_t most = items + 2 * kInsertSteps * lanes;
    return {.max_items = most,
            .max_bytes = r.capacity_bytes,
            .sampler = {.kind = replay::SelectorKind::fifo},
            .max_times_sampled = 1,
            .limiter = {.kind = replay::RateLimiterKind::queue,
                        .queue_items = config.deterministic ? most : items}};
  }
  const double lanes = config.actors.environment * config.actors.environments_per_actor;
  // Wide enough for everything in flight: two insertions per environment and the prefetched
  // batches.
  const double least =
      std::max(2.0 * kInsertSteps * lanes * r.samples_per_insert,
               static_cast<double>((config.learner.prefetch + 2) * config.agent->batch_size()));
  const double buffer =
      r.error_buffer > 0
          ? r.error_buffer
          : std::max(least, 0.1 * static_cast<double>(r.minimum_items) * r.samples_per_insert);
  return {.max_items = std::max<std::int64_t>(1, r.capacity_items / r.shards),
          .max_bytes = std::max<std::int64_t>(1, r.capacity_bytes / r.shards),
          .sampler = sampler(r),
          .remover = selector(r.remover, r.priority_exponent),
          .max_times_sampled = r.max_times_sampled,
          .insert_at_maximum = takes_priorities(config),
          .compression = replay::compression_named(r.compression),
          .limiter = {.minimum_items = std::max<std::int64_t>(1, r.minimum_items / r.shards),
                      .samples_per_insert = r.samples_per_insert,
                      // In a deterministic run the rounds keep the ratio.
                      .error_buffer = config.deterministic ? kNoRatio : buffer / r.shards}};
}

caf::actor spawn_role(caf::actor_system& system, const RunConfig& config, Role role,
                      const RoleWiring& wiring) {
  switch (role) {
  case Role::replay: {
    const ReplayOptions options{
        .shard = wiring.index,
        .shards = config.replay.shards,
        .replicas = config.learner.replicas,
        .in_turn = config.deterministic,
        .in_turn_updates = takes_priorities(config),
        .table = shard_table(config),
        .transitions = wiring.transitions,
        .recording = config.recording,
        .seed = learner::split_seed(config.seed,
                                    {kShardSeed, static_cast<std::uint64_t>(wiring.index)}),
        .spill_folder = config.replay.disk_bytes > 0 ? config.replay.disk_folder : "",
        .spill_bytes = static_cast<std::uint64_t>(config.replay.disk_bytes / config.replay.shards),
        .snapshot_folder = snapshot_folder(config, Role::replay, wiring.index),
        .snapshot_period = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::duration<double>(config.supervision.snapshot_seconds)),
        .incarnation = wiring.incarnation,
        .endpoint = wiring.endpoint,
        .context = wiring.context};
    return caf::actor_cast<caf::actor>(system.spawn(replay_actor, options));
  }
  case Role::parameter_server:
    return caf::actor_cast<caf::actor>(system.spawn(
        parameter_server_actor, wiring.context, host_options(config, wiring), wiring.incarnation));
  case Role::learner:
    return caf::actor_cast<caf::actor>(
        system.spawn<caf::detached>(learner_actor, learner_options(config, wiring)));
  case Role::environment: {
    const auto task =
        config.companion ? std::make_shared<env::TaskOptions>(config.environment.options) : nullptr;
    const learner::Storage storage = config.agent->storage();
    const std::int64_t lanes = config.actors.environments_per_actor;
    const EnvironmentOptions options{
        .actor = wiring.index,
        .incarnation = wiring.incarnation,
        .make = [config, wiring, task] { return make_collector(config, wiring, task); },
        .shards = wiring.shards,
        .remote = wiring.remote_shards,
        .transitions = wiring.transitions,
        .first_lane = wiring.index * lanes,
        .insert_steps = kInsertSteps,
        .pixels = config.environment.pixels.has_value(),
        .camera = config.environment.pixels.value_or(env::PixelOptions{}).camera,
        .turns = PolicyTurns(storage.newest_policy ? storage.sequence_steps : 0,
                             rows_per_replica(config) * config.learner.replicas,
                             lanes_of_run(config, wiring)),
        .task = task,
    };
    return caf::actor_cast<caf::actor>(system.spawn<caf::detached>(environment_actor, options));
  }
  case Role::evaluator: {
    const EvaluatorOptions options{
        .environment = [config] { return env::make_environment(config.environment); },
        .policy = [config,
                   transitions =
                       wiring.transitions] { return config.agent->make_policy(transitions); },
    };
    return caf::actor_cast<caf::actor>(system.spawn<caf::detached>(evaluator_actor, options));
  }
  }
  throw std::logic_error("no such role");
}

} // namespace troupe::actors
