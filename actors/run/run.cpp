#include "actors/run/run.hpp"

#include <stdexcept>
#include <vector>

#include "actors/protocol/system.hpp"
#include "actors/roles/checkpoint.hpp"
#include "actors/run/checkpointer_actor.hpp"
#include "actors/run/head.hpp"
#include "actors/supervision/head_record.hpp"
#include "actors/supervision/roles.hpp"
#include "actors/supervision/strategies.hpp"
#include "env/render/renderer.hpp"
#include "learner/acting/collector.hpp"

namespace troupe::actors {

namespace {

/// Makes and draws an environment, to find errors that appear only then (camera, model, OpenGL)
/// before anything starts.
replay::TransitionSpec try_environment(const RunConfig& config, const RunCallbacks& callbacks) {
  const auto environment = env::make_environment(config.environment);
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  environment->reset(config.seed, observation);
  if (config.environment.pixels && callbacks.log) {
    const env::RendererInfo info = env::renderer_info(*config.environment.pixels);
    callbacks.log(
        info.slow ? "warning" : "info",
        "pictures by " + info.description
            + (info.slow ? " (draws in software: slow with environment.pixels.effects)" : ""));
  }
  return stored_transitions(config, environment->spec());
}

/// Parameters and moments must be on servers if and only if they were when they were saved.
void check_servers(const RunConfig& config, const std::filesystem::path& checkpoint) {
  const bool saved = std::filesystem::exists(part_path(checkpoint, Role::parameter_server, 0));
  if (saved == has_servers(config))
    return;
  throw std::invalid_argument(
      "learner.strategy \"" + config.learner.strategy + "\" "
      + (saved ? "has no parameter servers, but " + checkpoint.string()
                     + " has its parameters and moments on them"
               : "has parameter servers, but " + checkpoint.string()
                     + " was written without any, so they would have no moments")
      + "; resume with the strategy it was trained with, or start a new run");
}

/// These numbers must not change, because rounds count the steps of each environment.
void check_rounds(const RunConfig& config, const wire::RunState& state) {
  const auto require_same = [](const std::string& key, int now, int before) {
    if (before != 0 && now != before)
      throw std::invalid_argument(
          key + " " + std::to_string(now) + ": the run has " + std::to_string(before)
          + ", and a deterministic run counts the steps of each "
            "environment in rounds; resume with that number, or start a new run");
  };
  require_same("actors.environment", config.actors.environment, state.environment_actors());
  require_same("actors.environments_per_actor", config.actors.environments_per_actor,
               state.environments_per_actor());
}

/// The counters of a checkpoint, from which a resumed run continues. Shards that restore their
/// items restore their counts, too; those of a recording insert the same items again.
wire::RunState counters_of(const RunConfig& config, const std::filesystem::path& checkpoint) {
  wire::RunState state = read_manifest(checkpoint).state();
  if (config.workload || std::filesystem::exists(part_path(checkpoint, Role::replay, 0)))
    return state;
  if (config.recording.empty())
    state.set_earlier_inserts(state.inserts());
  state.set_earlier_samples(state.samples());
  return state;
}

/// The configuration must not set what the agent decides.
void check_on_policy(const RunConfig& config) {
  const RunConfig given;
  const auto refuse = [](const char* key) {
    throw std::invalid_argument(std::string(key)
                                + " is given, but the agent uses its items in the order in which "
                                  "they were made, from one shard; leave the key out");
  };
  const auto& r = config.replay;
  const auto& d = given.replay;
  for (const auto& [key, other] :
       {std::pair{"replay.shards", r.shards != d.shards},
        {"replay.capacity_items", r.capacity_items != d.capacity_items},
        {"replay.minimum_items", r.minimum_items != d.minimum_items},
        {"replay.samples_per_insert", r.samples_per_insert != d.samples_per_insert},
        {"replay.error_buffer", r.error_buffer != d.error_buffer},
        {"replay.sampler", r.sampler != d.sampler},
        {"replay.remover", r.remover != d.remover},
        {"replay.max_times_sampled", r.max_times_sampled != d.max_times_sampled},
        {"replay.disk_bytes", r.disk_bytes != d.disk_bytes},
        {"learner.prefetch", config.learner.prefetch != given.learner.prefetch},
        {"actors.random_steps", config.actors.random_steps != given.actors.random_steps
                                    && config.actors.random_steps != 0}})
    if (other)
      refuse(key);
}

/// Checks what a run with a companion requires.
void check_companion(const RunConfig& config, bool processes) {
  if (!config.plays())
    throw std::invalid_argument("companion is given, but no environment actor plays in this run: "
                                "there would be no episodes to report; leave it out");
  if (processes)
    throw std::invalid_argument(
        "companion is given, but the run uses separate processes or nodes: these make their "
        "environments from the run's config.textproto alone, which names no companion, so its "
        "changes would not reach them; leave --processes out");
  if (config.environment.normalization.mode == "running")
    throw std::invalid_argument(
        "companion is given with environment.normalization.mode \"running\": the statistics would "
        "restart with each change of the task's options; use \"frozen\" or \"off\"");
}

/// In a deterministic run each shard gives a row of each batch.
void check_rows(const RunConfig& config) {
  const auto rows = rows_per_replica(config);
  if (config.deterministic && rows < config.replay.shards)
    throw std::invalid_argument("deterministic: true with replay.shards "
                                + std::to_string(config.replay.shards) + " and a batch of "
                                + std::to_string(rows)
                                + " per replica: each shard must give a row; use fewer shards");
}

/// Checks what a run that learns from recorded episodes requires.
void check_recorded(const RunConfig& config, const learner::Storage& storage) {
  if (storage.on_policy || !storage.extras.empty())
    throw std::invalid_argument(
        "the agent does not learn from recording.path: it needs "
        + std::string(storage.on_policy ? "the actions of its own newest policy"
                                        : "columns of its own policy, which no recording has")
        + "; choose another agent, or leave the block recording out");
  check_rows(config);
  check(shard_table(config));
}

/// Checks that the episodes and the agent allow hindsight, which relabels transitions of episodes
/// that environment actors play.
void check_hindsight(const RunConfig& config, const learner::Storage& storage) {
  const auto& hindsight = config.replay.hindsight;
  if (hindsight.goals == 0 && hindsight.strategy != RunConfig().replay.hindsight.strategy)
    throw std::invalid_argument("replay.hindsight.strategy is \"" + hindsight.strategy
                                + "\", but replay.hindsight.goals is 0; set how many goals each "
                                  "transition gets, e.g. 4, or leave the key out");
  if (hindsight.goals == 0)
    return;
  const std::string is = "replay.hindsight.goals is " + std::to_string(hindsight.goals) + ", but ";
  if (!config.recording.empty())
    throw std::invalid_argument(is
                                + "recording.path is given, and a recording does not say what "
                                  "reaching a goal is worth; leave one of the two out");
  if (storage.sequence_steps > 0)
    throw std::invalid_argument(is
                                + "the agent learns from sequences; choose one that learns from "
                                  "transitions, or leave the block out");
  if (storage.running_return)
    throw std::invalid_argument(is
                                + "the agent scales rewards by the returns of episodes, and "
                                  "relabelled transitions have none; choose another agent, or "
                                  "leave the block out");
  if (config.replay.n_step != 1)
    throw std::invalid_argument(is + "replay.n_step is " + std::to_string(config.replay.n_step)
                                + "; it must be 1 with hindsight");
}

/// Returns the record of a dead head whose processes may be alive, or null if there is nothing to
/// take over, with the reason in `problem`.
std::shared_ptr<const wire::HeadRecord> record_to_succeed(const RunConfig& config,
                                                          const std::filesystem::path& folder,
                                                          const Deployment& deployment,
                                                          std::string& problem) {
  if (!deployment.without_takeover)
    return nullptr;
  try {
    return std::make_shared<const wire::HeadRecord>(read_head_record(folder, config));
  } catch (const std::exception& e) {
    problem = e.what();
    return nullptr;
  }
}

} // namespace

void check_run(const RunConfig& config, bool processes) {
  strategy_of(config, processes);
  if (!processes)
    device_of_learner(config, false, 0);
  if (processes && config.deterministic && config.learner.replicas > 1 && !config.workload)
    throw std::invalid_argument("deterministic: true with --processes and learner.replicas "
                                + std::to_string(config.learner.replicas)
                                + ": over sockets the order of the replicas' samples is not fixed; "
                                  "use one replica, or leave "
                                  "--processes out");
  if (!config.plays() && config.stop.updates < 1)
    throw std::invalid_argument(
        "stop.updates " + std::to_string(config.stop.updates)
        + " must be at least 1, the length of a run without environment actors");
  if (config.companion)
    check_companion(config, processes);
  if (config.workload)
    return;
  const learner::Storage storage = config.agent->storage();
  check_hindsight(config, storage);
  if (storage.sequence_steps > 0 && config.replay.n_step != RunConfig().replay.n_step)
    throw std::invalid_argument("replay.n_step is given, but the agent learns from sequences of "
                                + std::to_string(storage.sequence_steps)
                                + " steps; leave the key out");
  if (!config.recording.empty())
    return check_recorded(config, storage);
  if (storage.on_policy)
    check_on_policy(config);
  if (config.replay.minimum_items > config.replay.capacity_items)
    throw std::invalid_argument(
        "replay.minimum_items " + std::to_string(config.replay.minimum_items)
        + " is above replay.capacity_items " + std::to_string(config.replay.capacity_items)
        + ": learning would never start; lower it");
  const auto lanes = std::int64_t{config.actors.environment} * config.actors.environments_per_actor;
  if (config.replay.shards > lanes)
    throw std::invalid_argument(
        "replay.shards " + std::to_string(config.replay.shards) + " is above "
        + std::to_string(lanes)
        + ", the environments of the run: each inserts into one shard, and "
          "a shard without items would hold up the learner; use fewer shards");
  if (config.deterministic && lanes % config.replay.shards != 0)
    throw std::invalid_argument(
        "deterministic: true with replay.shards " + std::to_string(config.replay.shards) + " and "
        + std::to_string(lanes)
        + " environments (actors.environment * actors.environments_per_actor): each shard must get "
          "the same share of a round's items; make the environments a multiple of the shards");
  check_rows(config);
  check(shard_table(config)); // before any actor starts
}

void check_resumption(const RunConfig& config, const std::filesystem::path& checkpoint) {
  const auto state = read_manifest(checkpoint).state();
  check_servers(config, checkpoint);
  if (config.plays() && state.companion() != static_cast<bool>(config.companion))
    throw std::invalid_argument(
        "companion is " + std::string(config.companion ? "given" : "not given") + ", but "
        + checkpoint.string() + " was written " + (config.companion ? "without" : "with")
        + " one: its environments' states do not match; resume it as it was");
  if (config.deterministic && !config.workload)
    check_rounds(config, state);
}

RunResult run(const RunConfig& config, const std::filesystem::path& folder,
              const std::filesystem::path& resume_from, const Deployment& deployment,
              const RunCallbacks& callbacks, const std::atomic<bool>& stop) {
  check_run(config, has_processes(deployment));
  if (!resume_from.empty())
    check_resumption(config, resume_from);
  const auto transitions =
      config.workload ? replay::TransitionSpec() : try_environment(config, callbacks);
  auto checkpoint = resume_from;
  std::string problem; // why nothing can be taken over
  const auto succeeds = record_to_succeed(config, folder, deployment, problem);
  const bool comes_back = deployment.nodes && deployment.nodes->head_comes_back;
  std::atomic<bool> nodes_wait = comes_back;
  RunResult result;
  {
    SystemConfig system_config(is_operated(deployment));
    caf::actor_system system(system_config);
    RunContext context{.system = system,
                       .config = config,
                       .transitions = transitions,
                       .folder = folder,
                       .resume_from = checkpoint,
                       .deployment = deployment,
                       .callbacks = callbacks,
                       .stop = stop,
                       .nodes_wait = nodes_wait,
                       .before = succeeds ? succeeds->before() : wire::RunState(),
                       .succeeds = succeeds};
    const auto lead = [&] {
      Head head(context);
      result = head.run();
      nodes_wait = comes_back && (!result.error.empty() || (result.interrupted && stop));
    };
    bool done = false;
    if (succeeds)
      try {
        lead();
        done = true;
      } catch (const NothingToTakeOver& e) {
        problem = e.what();
        context.succeeds.reset();
        nodes_wait = comes_back;
      }
    if (!done) {
      if (deployment.without_takeover) {
        checkpoint = deployment.without_takeover();
        context.log("warning",
                    problem + "; the run "
                        + (checkpoint.empty() ? "restarts" : "continues from its newest checkpoint")
                        + ", with new processes");
      }
      context.before = checkpoint.empty() ? wire::RunState() : counters_of(config, checkpoint);
      lead();
    }
  } // no actor is writing any more
  remove_head_record(folder);
  if (!result.error.empty()) {
    try {
      clear_checkpoint_remains(folder / "checkpoints");
    } catch (const std::filesystem::filesystem_error&) {
      // The run's own error is reported instead; a resumed run cleans up as well.
    }
  }
  return result;
}

} // namespace troupe::actors
