#include <algorithm>

#include "actors/ask.hpp"
#include "actors/checkpointer_actor.hpp"
#include "actors/control_actor.hpp"
#include "actors/descriptor_limit.hpp"
#include "actors/head.hpp"
#include "actors/roles.hpp"
#include "actors/supervisor_actor.hpp"
#include "collectives/communicator.hpp"

namespace troupe::actors {

namespace {

void empty(const std::filesystem::path& folder) {
  if (!folder.empty())
    std::filesystem::remove_all(folder);
}

} // namespace

caf::actor ask_later(caf::actor_system& system, const caf::actor& listener,
                     const caf::actor& evaluator, const RunConfig& config, int episodes,
                     std::uint64_t minimum_version) {
  wire::EvaluationRequest request;
  request.set_episodes(episodes);
  request.set_seed(evaluation_seed(config));
  request.set_minimum_version(minimum_version);
  const auto relay_answer = [=](caf::event_based_actor* relay, const Encoded& question) {
    relay->request(evaluator, episodes * kRequestDeadline, evaluate_atom_v, question)
        .then([=](const Encoded& result) { relay->send(listener, evaluate_atom_v, result); },
              [=](const caf::error&) { relay->send(listener, evaluate_atom_v, Encoded{}); });
  };
  return system.spawn(relay_answer,
                      encode(request)); // CAF 0.17 dereferences null without an argument
}

caf::actor tell_when_written(caf::actor_system& system, const caf::actor& listener,
                             const CheckpointerActor& checkpointer) {
  const auto relay_answer = [&system, listener](caf::event_based_actor* relay,
                                                const CheckpointerActor& asked) {
    relay->request(asked, kWriteDeadline, written_atom_v)
        .then(
            [=](const std::string& path) {
              relay->send(listener, written_atom_v, path, std::string());
            },
            [=, &system](const caf::error& error) {
              relay->send(listener, written_atom_v, std::string(), explain(system, error));
            });
  };
  return system.spawn(relay_answer, checkpointer);
}

Head::Head(caf::actor_system& system, const RunConfig& config,
           const replay::TransitionSpec& transitions, std::filesystem::path folder,
           std::filesystem::path resume_from, const Deployment& deployment,
           const RunCallbacks& callbacks, const std::atomic<bool>& stop)
    : system_(system),
      config_(config),
      transitions_(transitions),
      folder_(std::move(folder)),
      resume_from_(std::move(resume_from)),
      deployment_(deployment),
      callbacks_(callbacks),
      stop_(stop),
      self_(system, true),
      environments_(config.actors.environment) {}

Head::~Head() {
  if (supervisor_) {
    self_->request(*supervisor_, std::chrono::seconds(60), stop_atom_v)
        .receive([](done_atom) {}, [](const caf::error&) {});
    self_->send_exit(*supervisor_, caf::exit_reason::user_shutdown);
  }
  if (metrics_)
    self_->send_exit(*metrics_, caf::exit_reason::user_shutdown);
  if (checkpointer_)
    self_->send_exit(*checkpointer_, caf::exit_reason::user_shutdown);
  if (control_)
    self_->send_exit(*control_, caf::exit_reason::user_shutdown);
}

void Head::log(const std::string& level, const std::string& text) const {
  if (callbacks_.log)
    callbacks_.log(level, text);
}

const caf::actor& Head::actor(Role role, std::int32_t index) const {
  const auto at = up_.find({role, index});
  if (at == up_.end())
    throw RunFailed(std::string(role_name(role)) + " actor " + std::to_string(index)
                    + " is not there");
  return at->second;
}

std::vector<caf::actor> Head::all(Role role) const {
  std::vector<caf::actor> found;
  for (const auto& [key, who] : up_)
    if (key.first == role)
      found.push_back(who);
  return found;
}

void Head::start_services() {
  if (!resume_from_.empty())
    before_ = read_manifest(resume_from_).state();
  if (before_.environments() > 0 && !config_.workload
      && before_.environments_configured() == config_.actors.environment) {
    environments_ = before_.environments();
    log("info", "environment actors: " + std::to_string(environments_)
                    + ", as the run was scaled; its configuration has "
                    + std::to_string(config_.actors.environment));
  }
  for (int i = 0; i < before_.incarnations_size() && !config_.deterministic; ++i)
    incarnations_[{Role::environment, i}] =
        before_.incarnations(i) + 1;                 // a resumed run's writers are new ones
  empty(snapshot_folder(config_, Role::learner, 0)); // of an earlier life of the run
  const caf::actor me = self_;
  metrics_ = system_.spawn(metrics_actor, me, encode(before_));
  checkpointer_ = system_.spawn(checkpointer_actor,
                                CheckpointerOptions{.with_replay = config_.checkpoint.replay,
                                                    .keep = config_.checkpoint.keep,
                                                    .keep_best = config_.checkpoint.keep_best});
  SupervisorOptions options{
      .config = config_, .transitions = transitions_, .listener = me, .deployment = deployment_};
  options.config.actors.environment = environments_;
  const bool processes = has_processes(deployment_);
  if (processes) {
    // The supervisor is told its own port by being published before it starts anybody.
    options.head_port = port_ = deployment_.head_port != 0
                                    ? deployment_.head_port
                                    : static_cast<std::uint16_t>(collectives::free_port());
    options.epoch = random_life();
    control_ = system_.spawn(control_actor,
                             ControlOptions{.config = config_,
                                            .head = me,
                                            .epoch = options.epoch,
                                            .folder = std::filesystem::absolute(folder_).string()});
    options.control = control_;
    options.config_file = std::filesystem::absolute(folder_ / "config.textproto").string();
  }
  supervisor_ = system_.spawn(supervisor_actor, options);
  if (!processes)
    return;
  raise_descriptor_limit();
  remoting_ = std::make_unique<Remoting>(
      system_, RemotingOptions{.keys = deployment_.keys, .on_stranger = [this](const auto& who) {
                                 log("warning", "a stranger was refused: " + who);
                               }});
  try {
    remoting_->publish(*supervisor_, deployment_.listen, port_);
  } catch (const std::runtime_error& e) {
    throw RunFailed("cannot listen on " + deployment_.listen + ":" + std::to_string(port_)
                    + " for the run's processes: " + e.what()
                    + "; free the port or name another with --port");
  }
  if (deployment_.listening)
    deployment_.listening(port_);
}

void Head::spawn(Role role, std::int32_t index) {
  std::int64_t steps_before = 0;
  const std::uint64_t incarnation = incarnations_[{role, index}];
  if (role == Role::environment && (begun_ || !goes_on(index)))
    steps_before = std::max(progress_.agent_steps, before_.agent_steps()) / lanes();
  self_->send(*supervisor_, spawn_atom_v, static_cast<std::uint8_t>(role), index, incarnation,
              steps_before);
}

void Head::start_role(Role role) {
  const int count = this->count(role);
  for (int i = 0; i < count; ++i)
    spawn(role, i);
  auto deadline = Clock::now() + kStartDeadline;
  if (deployment_.nodes)
    deadline += std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(deployment_.nodes->join_seconds));
  while (static_cast<int>(all(role).size()) < count) {
    take_messages(std::chrono::milliseconds(50));
    if (to_restart_.size() > 0)
      restart_lost();
    if (stopping())
      throw RunFailed("stopped before training began");
    if (Clock::now() > deadline)
      throw RunFailed("only " + std::to_string(all(role).size()) + " of " + std::to_string(count)
                      + " " + role_name(role) + " actors started within "
                      + std::to_string(kStartDeadline.count()) + " s");
  }
  for (int i = 0; i < count; ++i)
    subscribe(role, i);
}

void Head::subscribe(Role role, std::int32_t index) {
  const auto number = static_cast<std::uint8_t>(role);
  if (role != Role::evaluator)
    self_->send(*metrics_, subscribe_atom_v, number, index, actor(role, index));
  self_->send(*checkpointer_, subscribe_atom_v, number, index, actor(role, index));
}

void Head::load(Role role, std::int32_t index, const std::filesystem::path& path) {
  ask<done_atom>(actor(role, index), kStartDeadline, "restoring " + path.string(), load_atom_v,
                 path.string());
}

void Head::restore_servers() {
  for (int i = 0; i < role_count(config_, Role::parameter_server); ++i)
    load(Role::parameter_server, i, part_path(resume_from_, Role::parameter_server, i));
}

void Head::restore() {
  restore_replay();
  for (int i = 0; i < config_.learner.replicas; ++i)
    load(Role::learner, i, resume_from_);
  restore_environments();
  self_->send(*checkpointer_, load_atom_v, resume_from_.string());
  updates_granted_ = before_.updates();
  lane_steps_ = before_.lane_steps();
  next_evaluation_ = before_.next_evaluation();
  log("info", "resumed at " + std::to_string(before_.updates()) + " updates"
                  + (config_.workload ? std::string()
                                      : ", " + std::to_string(before_.environment_steps())
                                            + " environment steps"));
}

void Head::begin_training() {
  if (next_evaluation_ == 0)
    next_evaluation_ = config_.evaluation.period;
  grant_learners(std::max(updates_granted_, progress_.updates)); // the policy is published
  self_->send(*metrics_, grant_atom_v, true);
  training_ = true;
  paused_ = false;
  begun_ = true;
  if (!config_.deterministic)
    grant_environments();
}

/// Agent steps that each environment of an actor makes in its life, at the most: what it had made
/// when the run was paused last, and its share of what is left; or whatever the run may make.
std::int64_t Head::steps_granted(std::int32_t environment_actor) const {
  const auto steps = [&](std::int64_t left, std::int64_t sharers) {
    const std::int64_t per_step = sharers * config_.environment.action_repeat;
    return std::max<std::int64_t>(0, (left + per_step - 1) / per_step);
  };
  if (each_may_do_all_)
    return steps(config_.stop.environment_steps - before_.environment_steps(), 1);
  const std::int64_t left = config_.stop.environment_steps
                            - std::max(progress_.environment_steps, before_.environment_steps());
  const auto made = steps_made_.find({Role::environment, environment_actor});
  return (made == steps_made_.end() ? 0 : made->second) + steps(left, lanes());
}

void Head::refresh() {
  on_update(ask<UpdatePtr>(caf::actor_cast<caf::actor>(*metrics_), kRequestDeadline,
                           "asking for counters", report_atom_v));
}

} // namespace troupe::actors
