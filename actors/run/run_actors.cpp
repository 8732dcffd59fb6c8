#include "actors/run/run_actors.hpp"

#include <algorithm>

#include "actors/remoting/descriptor_limit.hpp"
#include "actors/run/checkpointer_actor.hpp"
#include "actors/run/control_actor.hpp"
#include "actors/run/metrics_actor.hpp"
#include "actors/supervision/roles.hpp"
#include "actors/supervision/supervisor_actor.hpp"

namespace troupe::actors {

std::string actor_name(const ActorKey& key) {
  return std::string(role_name(key.first)) + " actor " + std::to_string(key.second);
}

RunActors::RunActors(const RunContext& context, Events events)
    : context_(context),
      events_(std::move(events)),
      self_(context.system, true),
      task_options_(context.config.environment.options) {
  const auto& before = context.before;
  if (context.succeeds) {
    for (const auto& one : context.succeeds->processes()) {
      const ActorKey key{role_named(one.role()), one.index()};
      incarnations_[key] = one.incarnation();
      places_[key] = {one.endpoint(), one.process()};
    }
    return;
  }
  for (int i = 0; i < before.incarnations_size() && !context.config.deterministic; ++i)
    incarnations_[{Role::environment, i}] =
        before.incarnations(i) + 1; // a resumed run's writers are new ones
}

RunActors::~RunActors() {
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

void RunActors::start_services(int environment_actors) {
  const RunConfig& config = context_.config;
  const Deployment& deployment = context_.deployment;
  const caf::actor me = self_;
  metrics_ = context_.system.spawn(metrics_actor, me, encode(context_.before), config.on_policy());
  if (context_.succeeds)
    send(*metrics_, load_atom_v, encode(context_.succeeds->metrics()));
  checkpointer_ = context_.system.spawn(checkpointer_actor, config.checkpoint);
  SupervisorOptions options{.config = config,
                            .transitions = context_.transitions,
                            .listener = me,
                            .deployment = deployment,
                            .nodes_wait = &context_.nodes_wait};
  options.config.actors.environment = environment_actors;
  if (is_operated(deployment)) {
    open_remoting();
    if (has_processes(deployment))
      options.head_port = port_; // otherwise the supervisor starts threads
    options.epoch = epoch_ = context_.succeeds ? context_.succeeds->epoch() : random_life();
    options.succeeds = context_.succeeds;
    const auto folder = std::filesystem::absolute(context_.folder);
    control_ =
        context_.system.spawn(control_actor, ControlOptions{.config = config,
                                                            .head = me,
                                                            .epoch = options.epoch,
                                                            .folder = folder.string(),
                                                            .threads = !has_processes(deployment)});
    options.control = control_;
    options.config_file = (folder / "config.textproto").string();
  }
  supervisor_ = context_.system.spawn(supervisor_actor, options);
  if (has_processes(deployment)) {
    publish();
  } else if (is_operated(deployment)) {
    try {
      publish();
    } catch (const std::exception& e) { // training continues without operators
      context_.log("warning", std::string("the run cannot be operated: ") + e.what());
    }
  }
}

/// Chooses the port.
void RunActors::open_remoting() {
  const Deployment& deployment = context_.deployment;
  raise_descriptor_limit();
  remoting_ = std::make_unique<Remoting>(
      context_.system,
      RemotingOptions{
          .keys = deployment.keys,
          .unreachable = std::chrono::milliseconds( // later than a silent node is lost
              static_cast<std::int64_t>(2000 * context_.config.supervision.lost_seconds)),
          .on_stranger = [me = caf::actor(self_).address()](const std::string& who) {
            if (const auto head = caf::actor_cast<caf::actor>(me))
              caf::anon_send(head, refused_atom_v, who);
          }});
  port_ = context_.succeeds           ? static_cast<std::uint16_t>(context_.succeeds->port())
          : deployment.head_port != 0 ? deployment.head_port
                                      : remoting_->reserve(deployment.listen);
}

/// Called before the supervisor starts a process, which must find it.
void RunActors::publish() {
  const Deployment& deployment = context_.deployment;
  try {
    remoting_->publish(*supervisor_, deployment.listen, port_);
  } catch (const std::runtime_error& e) {
    throw RunFailed("cannot listen on " + deployment.listen + ":" + std::to_string(port_)
                    + " for the run's processes: " + e.what()
                    + "; free the port or name another with --port");
  }
  if (deployment.listening)
    deployment.listening(port_);
}

const caf::actor& RunActors::at(const ActorKey& key) const {
  const auto found = up_.find(key);
  if (found == up_.end())
    throw RunFailed(actor_name(key) + " is not running");
  return found->second;
}

std::vector<caf::actor> RunActors::all(Role role) const {
  std::vector<caf::actor> found;
  for (const auto& [key, who] : up_)
    if (key.first == role)
      found.push_back(who);
  return found;
}

std::vector<ActorKey> RunActors::keys(Role role) const {
  std::vector<ActorKey> found;
  for (const auto& [key, who] : up_)
    if (key.first == role)
      found.push_back(key);
  return found;
}

void RunActors::spawn(const ActorKey& key, std::int64_t steps_before) {
  const bool first = incarnations_.try_emplace(key, 0).second;
  if ((std::exchange(changed_, false) || first) && events_.starting)
    events_.starting();
  send(*supervisor_, spawn_atom_v, key.first, key.second, incarnations_[key], steps_before);
}

void RunActors::subscribe(const ActorKey& key) {
  send(*metrics_, subscribe_atom_v, key.first, key.second, at(key));
  send(*checkpointer_, subscribe_atom_v, key.first, key.second, at(key));
  if (key.first == Role::environment && context_.config.companion)
    send_task(key);
}

void RunActors::send_task(const ActorKey& key) {
  wire::TaskChange change;
  change.set_changes(true);
  for (const std::string& option : task_options_)
    change.add_options(option);
  caf::anon_send(at(key), task_atom_v, encode(change));
}

void RunActors::change_task(std::vector<std::string> options) {
  task_options_ = std::move(options);
  for (const ActorKey& key : keys(Role::environment))
    send_task(key);
}

void load(RunActors& actors, const ActorKey& key, const std::filesystem::path& path) {
  actors.ask<done_atom>(actors.at(key), kStartDeadline, "restoring " + path.string(), load_atom_v,
                        path.string());
}

void RunActors::forget(const ActorKey& key, bool restart) {
  up_.erase(key);
  ++incarnations_[key];
  changed_ = true;
  send(*metrics_, lost_atom_v, key.first, key.second);
  send(*checkpointer_, lost_atom_v, key.first, key.second);
  if (restart)
    lost_.insert(key);
}

void RunActors::on_lost(const ActorKey& key, const std::string& reason, bool may_restart) {
  up_.erase(key);
  const std::string what = actor_name(key) + " died: " + reason;
  if (!may_restart || (context_.config.deterministic && key.first != Role::evaluator)) {
    if (first_cause_.empty())
      first_cause_ = what;
    if (has_processes(context_.deployment))
      context_.log("info", "the output of " + actor_name(key) + " is in logs/"
                               + role_name(key.first) + "-" + std::to_string(key.second) + ".log");
    return;
  }
  context_.log("warning", what + "; restarting it");
  events_.lost(key, what);
  forget(key, true);
}

void RunActors::take_messages(std::chrono::milliseconds at_most) {
  bool more = true;
  while (more) {
    self_->receive(
        [&](update_atom, const UpdatePtr& update) {
          events_.updated(update, remoting_ ? remoting_->strangers() : 0);
        },
        [&](started_atom, Role role, std::int32_t index, const caf::actor& who,
            const std::string& endpoint, std::int32_t process) {
          const ActorKey key{role, index};
          up_[key] = who;
          places_[key] = {endpoint, process};
        },
        [&](lost_atom, Role role, std::int32_t index, const std::string& reason, bool may_restart) {
          on_lost({role, index}, reason, may_restart);
        },
        [&](node_atom, const std::string& name, const std::string& why) {
          context_.log("warning", "node " + name + " " + why);
        },
        [&](refused_atom, const std::string& who) {
          context_.log("warning", "refused a stranger: " + who);
        },
        [&](answer_atom, std::uint64_t question) {
          const auto answered = answered_.extract(question);
          if (const auto handler = answered ? answered.mapped().lock() : nullptr)
            (*handler)();
        },
        [&](stop_atom) {
          if (!std::exchange(stop_requested_, true))
            context_.log("info", "stopping after a checkpoint, as requested");
        },
        [&](control_atom, std::uint64_t number, const ProtoBytes& request,
            const ProtoBytes& order) { events_.requested(number, request, order); },
        caf::after(at_most) >> [&] { more = false; });
    at_most = std::chrono::milliseconds(0);
  }
  if (!first_cause_.empty())
    throw RunFailed(first_cause_);
}

bool RunActors::asks_evaluator(const std::vector<caf::actor>& asked) const {
  const auto evaluator = up_.find({Role::evaluator, 0});
  return evaluator != up_.end()
         && std::find(asked.begin(), asked.end(), evaluator->second) != asked.end();
}

void RunActors::log_wait(const std::string& what, std::chrono::milliseconds so_far) const {
  context_.log(
      "warning",
      what + ": no answer for "
          + std::to_string(std::chrono::duration_cast<std::chrono::seconds>(so_far).count())
          + " s; it is alive, so the run waits (`troupe status` says for what)");
}

void RunActors::fail(const std::string& what, const caf::error& problem) {
  take_messages(kAftermath); // throws the first cause if an actor has died
  if (!lost_.empty())
    throw ActorLost();
  throw RunFailed(what + ": " + explain(context_.system, problem));
}

void RunActors::write(wire::RunState& state) const {
  if (context_.config.companion) {
    state.set_companion(true);
    state.mutable_task_options()->Add(task_options_.begin(), task_options_.end());
  }
  const auto& before = context_.before;
  int most = std::max(state.environment_actors(), before.incarnations_size());
  for (const auto& [key, incarnation] : incarnations_)
    if (key.first == Role::environment)
      most = std::max(most, key.second + 1); // including actors that were scaled down
  for (int i = 0; i < most; ++i) {
    const auto at = incarnations_.find({Role::environment, i});
    state.add_incarnations(at != incarnations_.end()        ? at->second
                           : i < before.incarnations_size() ? before.incarnations(i)
                                                            : 0);
  }
}

void RunActors::write(wire::HeadRecord& record, int environment_actors) const {
  record.set_epoch(epoch_);
  record.set_port(port_);
  std::map<ActorKey, std::uint64_t> all = incarnations_;
  for (const Role role : kRoles) {
    const int count = role == Role::environment && !context_.config.workload
                          ? environment_actors
                          : role_count(context_.config, role);
    for (int i = 0; i < count; ++i)
      all.try_emplace({role, i}, 0);
  }
  for (const auto& [key, incarnation] : all) {
    auto& process = *record.add_processes();
    process.set_role(role_name(key.first));
    process.set_index(key.second);
    process.set_incarnation(incarnation);
    if (const auto place = places_.find(key); place != places_.end()) {
      process.set_endpoint(place->second.endpoint);
      if (up_.contains(key))
        process.set_process(place->second.process);
    }
  }
}

} // namespace troupe::actors
