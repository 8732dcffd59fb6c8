#include "actors/run/control_actor.hpp"

#include <algorithm>
#include <utility>

#include "actors/protocol/system.hpp"
#include "actors/run/metrics_actor.hpp"
#include "actors/supervision/roles.hpp"
#include "env/text/number_in.hpp"

namespace troupe::actors {

const char* ControlState::name = "control";

namespace {

using ControlSelf = ControlActor::stateful_pointer<ControlState>;
constexpr std::int32_t kMostEnvironments = 65'536;    // actors
constexpr int kListed = 40;                           // maximum number of names in an error
constexpr double kMostRatio = 1e6, kMostBuffer = 1e9; // as for the configuration keys
constexpr std::int64_t kMostTimelineUpdates = 1000;

void set_counters(const RunConfig& config, const Progress& progress, wire::RunCounters& told) {
  told.set_environment_steps(progress.environment_steps);
  told.set_agent_steps(progress.agent_steps);
  told.set_episodes(progress.episodes);
  told.set_updates(progress.updates);
  told.set_inserts(progress.inserts);
  told.set_samples(progress.samples);
  told.set_replay_items(progress.replay_items);
  told.set_replay_bytes(progress.replay_bytes);
  told.set_replay_failed_spills(progress.replay_failed_spills);
  told.set_environment_steps_per_second(progress.environment_steps_per_second);
  told.set_updates_per_second(progress.updates_per_second);
  told.set_samples_per_second(progress.samples_per_second);
  told.set_parameter_lag(progress.parameter_lag);
  told.set_episode_return(progress.episode_return);
  told.set_training_seconds(progress.training_seconds);
  told.set_processor_seconds(progress.processor_seconds);
  told.set_target_steps(config.plays() ? config.stop.environment_steps : config.stop.updates);
}

/// Returns the possible operations in the order in which people read them.
std::vector<std::string> operations_of(const ControlState& state) {
  const RunConfig& config = state.options.config;
  std::vector<std::string> made{"stop", "checkpoint", "pause", "timeline"};
  wire::ControlRequest::Limit now;
  now.set_samples_per_insert(config.replay.samples_per_insert);
  if (why_not_limited(config, now).empty())
    made.emplace_back("limit");
  if (config.plays())
    made.emplace_back("picture");
  if (!state.options.threads && !config.deterministic) {
    made.emplace_back("restart");
    if (config.plays())
      made.emplace_back("scale");
  }
  return made;
}

ProtoBytes status(const ControlState& state, const wire::SupervisorReport& supervisor) {
  wire::RunStatus made;
  made.set_epoch(state.options.epoch);
  for (const std::string& one : operations_of(state))
    made.add_operations(one);
  *made.mutable_head() = state.head;
  *made.mutable_supervisor() = supervisor;
  if (!state.head.waits().empty())
    made.add_waits("head: " + state.head.waits());
  for (const auto& process : supervisor.processes())
    if (!process.waits().empty())
      made.add_waits(process.role() + " " + std::to_string(process.index()) + ": "
                     + process.waits());
  if (state.update) {
    set_counters(state.options.config, state.update->progress, *made.mutable_counters());
    for (const auto& line : state.update->progress.waits)
      made.add_waits(line);
  }
  return encode(made);
}

ProtoBytes done(const std::string& text) {
  wire::ControlDone made;
  made.set_text(text);
  return encode(made);
}

std::string why_no_picture(const RunConfig& config, const wire::PictureOrder& wanted) {
  if (!config.plays())
    return "this run learns from data and has no environments to look at";
  if (wanted.actor() < 0 || wanted.actor() >= kMostEnvironments)
    return "actor=" + std::to_string(wanted.actor()) + ": must be from 0 to "
           + std::to_string(kMostEnvironments - 1);
  return {};
}

caf::error refusal(const std::string& why) {
  return caf::make_error(Fault::bad_request, why);
}

std::string one_process(const char* what) {
  return std::string("the actors are threads of one process, which cannot be ") + what
         + "; train with --processes";
}

caf::result<ProtoBytes> ask_head(ControlSelf self, const ProtoBytes& request,
                                 const wire::RestartOrder& order) {
  auto& state = self->state;
  auto promise = self->make_response_promise<ProtoBytes>();
  state.asked.emplace(++state.requests, promise);
  caf::anon_send(state.options.head, control_atom_v, state.requests, request, encode(order));
  return promise;
}

caf::result<ProtoBytes> answer(ControlSelf self, const ProtoBytes& encoded,
                               const ProtoBytes& report) {
  const auto& state = self->state;
  const auto request = decode<wire::ControlRequest>(encoded);
  const auto there = decode<wire::SupervisorReport>(report);
  const bool asks_only = request.wanted_case() == wire::ControlRequest::kStatus;
  if (request.folder().empty() && !asks_only)
    return refusal(
        "the request must name the folder of its run in `folder`; only status may leave it out");
  if (!request.folder().empty() && request.folder() != state.options.folder)
    return refusal("this head leads another run, " + state.options.folder);
  switch (request.wanted_case()) {
  case wire::ControlRequest::kStatus:
    return status(state, there);
  case wire::ControlRequest::kStop:
    caf::anon_send(state.options.head, stop_atom_v);
    return done("the run writes a checkpoint and ends");
  case wire::ControlRequest::kScale: {
    const auto& wanted = request.scale();
    if (state.options.threads)
      return refusal(one_process("scaled"));
    if (const auto why = why_not_scaled(state.options.config, wanted.role(), wanted.count());
        !why.empty())
      return refusal(why);
    return ask_head(self, encoded, {});
  }
  case wire::ControlRequest::kLimit:
    if (const auto why = why_not_limited(state.options.config, request.limit()); !why.empty())
      return refusal(why);
    return ask_head(self, encoded, {});
  case wire::ControlRequest::kPicture:
    if (const auto why = why_no_picture(state.options.config, request.picture()); !why.empty())
      return refusal(why);
    return ask_head(self, encoded, {});
  case wire::ControlRequest::kTimeline:
    if (request.timeline() < 1 || request.timeline() > kMostTimelineUpdates)
      return refusal("updates=" + std::to_string(request.timeline()) + ": must be from 1 to "
                     + std::to_string(kMostTimelineUpdates));
    if (state.head.held())
      return refusal("the run is paused, so there are no updates to record; "
                     "`troupe pause --off` ends the pause");
    return ask_head(self, encoded, {});
  case wire::ControlRequest::kRestart:
    if (state.options.threads)
      return refusal(one_process("restarted"));
    return ask_head(self, encoded, restart_order(state.options.config, request.restart(), there));
  case wire::ControlRequest::kCheckpoint:
  case wire::ControlRequest::kPause:
    return ask_head(self, encoded, {});
  case wire::ControlRequest::WANTED_NOT_SET:
    break;
  }
  return refusal("this version does not know the request");
}

/// Splits "environment/3" into role and index. The index is -1 if all processes of the role are
/// meant.
std::pair<std::string, std::int32_t> parse_role(const std::string& text) {
  const auto slash = text.find('/');
  const std::string role = text.substr(0, slash);
  if (!text.empty())
    role_named(role);
  if (slash == std::string::npos)
    return {role, -1};
  const auto index = env::number_in<unsigned>(text.substr(slash + 1), 0, 999'999);
  if (!index)
    throw std::invalid_argument("role \"" + text + "\" must be ROLE or ROLE/INDEX, e.g. " + role
                                + "/0");
  return {role, static_cast<std::int32_t>(*index)};
}

} // namespace

std::string why_not_scaled(const RunConfig& config, const std::string& role, std::int32_t count) {
  const std::string stop_first = "; end the run with `troupe stop`, and continue it with --set and "
                                 "another number (`troupe resume`, "
                                 "or `troupe launch … --resume`)";
  try {
    role_named(role);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  if (role == "evaluator")
    return "evaluator=" + std::to_string(count)
           + ": a run has one evaluator; evaluation.period and evaluation.episodes say how much it "
             "plays";
  if (role == "replay")
    return "replay=" + std::to_string(count)
           + ": items stay in the shard that took them, so replay.shards cannot change during a run"
           + stop_first;
  if (role == "learner")
    return "learner=" + std::to_string(count)
           + ": learners share each batch and form one group, so learner.replicas cannot change "
             "during a run"
           + stop_first;
  if (role == "parameter_server")
    return "parameter_server=" + std::to_string(count)
           + ": each has a part of the parameters, so learner.parameter_servers cannot change "
             "during a run"
           + stop_first;
  if (!config.plays())
    return "environment=" + std::to_string(count)
           + ": this run learns from data and has no environments";
  if (config.deterministic)
    return "environment=" + std::to_string(count)
           + ": with deterministic: true all results depend on how many there are; leave "
             "deterministic out";
  if (count < 1 || count > kMostEnvironments)
    return "environment=" + std::to_string(count) + ": must be from 1 to "
           + std::to_string(kMostEnvironments);
  if (std::int64_t{count} * config.actors.environments_per_actor < config.replay.shards)
    return "environment=" + std::to_string(count) + ": the run has "
           + std::to_string(config.replay.shards)
           + " replay shards, and each needs an environment that inserts into it";
  return {};
}

std::string why_not_limited(const RunConfig& config, const wire::ControlRequest::Limit& wanted) {
  if (config.workload)
    return "this run learns from data of its own and has no replay";
  if (!config.recording.empty())
    return "this run learns from recorded episodes: nothing is inserted that a rate limiter could "
           "hold back";
  if (config.on_policy())
    return "the agent uses its items in order, from a queue; its length follows from the batch, "
           "and there is no ratio of samples to inserts to change";
  const auto& replay = config.replay;
  if (!(wanted.samples_per_insert() > 0 && wanted.samples_per_insert() <= kMostRatio))
    return "samples_per_insert=" + std::to_string(wanted.samples_per_insert())
           + ": must be above 0 and at most 1000000";
  if (!(wanted.error_buffer() >= 0 && wanted.error_buffer() <= kMostBuffer))
    return "error_buffer=" + std::to_string(wanted.error_buffer())
           + ": must be from 0 (automatic) to 1000000000";
  if (replay.max_times_sampled > 0
      && wanted.samples_per_insert() > static_cast<double>(replay.max_times_sampled))
    return "samples_per_insert=" + std::to_string(wanted.samples_per_insert())
           + ": must be at most replay.max_times_sampled, "
           + std::to_string(replay.max_times_sampled)
           + ", or items are removed before they have been sampled that often";
  const double least =
      std::max(static_cast<double>(config.agent->batch_size()), wanted.samples_per_insert());
  if (wanted.error_buffer() > 0 && wanted.error_buffer() < least)
    return "error_buffer=" + std::to_string(wanted.error_buffer())
           + ": must be 0 (automatic) or at least " + std::to_string(least)
           + ", the larger of the agent's batch and samples_per_insert, or actors and learner wait "
             "for each other";
  if (config.deterministic)
    return "with deterministic: true a change during the run changes the results; end the run "
           "with `troupe stop` and continue it with `troupe resume --set "
           "replay.samples_per_insert=…`";
  try {
    check(shard_table(limited(config, wanted)));
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}

RunConfig limited(const RunConfig& config, const wire::ControlRequest::Limit& wanted) {
  RunConfig changed = config;
  changed.replay.samples_per_insert = wanted.samples_per_insert();
  changed.replay.error_buffer = wanted.error_buffer();
  return changed;
}

wire::RestartOrder restart_order(const RunConfig& config,
                                 const wire::ControlRequest::Restart& wanted,
                                 const wire::SupervisorReport& there) {
  if (config.deterministic)
    throw std::invalid_argument(
        "restart: with deterministic: true a restart changes the results; end "
        "the run with `troupe stop` and continue with `troupe resume`");
  const auto [role, index] = parse_role(wanted.role());
  wire::RestartOrder order;
  std::string known;
  int listed = 0;
  for (const auto& process : there.processes()) {
    if (++listed <= kListed)
      known += (known.empty() ? "" : ", ") + process.role() + "/" + std::to_string(process.index())
               + (process.node().empty() ? "" : " on " + process.node());
    if ((!role.empty() && process.role() != role) || (index >= 0 && process.index() != index)
        || (!wanted.node().empty() && process.node() != wanted.node()))
      continue;
    auto& one = *order.add_processes();
    one.set_role(process.role());
    one.set_index(process.index());
  }
  if (order.processes_size() == 0)
    throw std::invalid_argument("no process is " + (wanted.role().empty() ? "there" : wanted.role())
                                + (wanted.node().empty() ? "" : " on node " + wanted.node())
                                + "; there are: " + known + (listed > kListed ? ", …" : ""));
  return order;
}

ControlActor::behavior_type control_actor(ControlSelf self, ControlOptions options) {
  self->state.options = std::move(options);
  self->set_exit_handler([self](caf::exit_msg& why) {
    for (auto& [number, promise] : std::exchange(self->state.asked, {}))
      promise.deliver(caf::make_error(Fault::stopping, std::string("the run ends")));
    self->quit(std::move(why.reason));
  });
  return {
      [self](update_atom, const UpdatePtr& update) { self->state.update = update; },
      [self](report_atom, const ProtoBytes& report) {
        self->state.head = decode<wire::HeadReport>(report);
      },
      [self](control_atom, const ProtoBytes& request,
             const ProtoBytes& supervisor) -> caf::result<ProtoBytes> {
        try {
          return answer(self, request, supervisor);
        } catch (const std::exception& e) {
          return refusal(e.what());
        }
      },
      [self](answer_atom, std::uint64_t number, const std::string& problem,
             const ProtoBytes& done) {
        auto& asked = self->state.asked;
        const auto at = asked.find(number);
        if (at == asked.end())
          return;
        if (problem.empty())
          at->second.deliver(done);
        else
          at->second.deliver(refusal(problem));
        asked.erase(at);
      },
  };
}

} // namespace troupe::actors
