#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <unistd.h>

#include <caf/io/all.hpp>

#include "actors/protocol/messages.pb.h"
#include "actors/protocol/system.hpp"
#include "actors/remoting/remoting.hpp"
#include "actors/roles/actor_store.hpp"
#include "actors/roles/parameter_actor.hpp"
#include "actors/supervision/process_table.hpp"
#include "actors/supervision/role_process.hpp"
#include "actors/supervision/roles.hpp"
#include "actors/supervision/strategies.hpp"
#include "env/wire/publication.hpp"
#include "learner/acting/collector.hpp"

namespace troupe::actors {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kJoinDeadline{60};
constexpr std::chrono::seconds kFarewell{1};
constexpr std::chrono::milliseconds kSearch{300};        // between two attempts to find a new head
constexpr Clock::duration kRest = std::chrono::hours(1); // a message ends it

struct ParameterFeed { // from the learner's process to an actor in this process
  env::wire::Subscriber subscriber;
  std::jthread thread;

  ParameterFeed(env::wire::Context& context, const std::string& endpoint, std::size_t floats,
                const caf::actor& who)
      : subscriber(context, endpoint, floats), thread([this, who](const std::stop_token& stop) {
          while (!stop.stop_requested())
            if (auto got = subscriber.wait(Clock::now() + std::chrono::milliseconds(100))) {
              auto made = std::make_shared<Parameters>();
              made->version = got->version;
              made->values.assign(got->values.begin(), got->values.end());
              caf::anon_send(who, publish_atom_v, ParametersPtr(std::move(made)));
            }
        }) {}
};

/// A publisher for several threads, which repeats the newest parameters for late subscribers.
struct ParameterPort {
  env::wire::Publisher publisher;
  std::mutex mutex;
  std::jthread thread;

  ParameterPort(env::wire::Context& context, const std::string& endpoint)
      : publisher(context, endpoint), thread([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            {
              const std::scoped_lock lock(mutex);
              publisher.repeat();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
          }
        }) {}
  void publish(const Parameters& parameters) {
    const std::scoped_lock lock(mutex);
    publisher.publish(parameters.version, parameters.values);
  }
};

replay::TransitionSpec transitions_of(const RunConfig& config) {
  return stored_transitions(config, env::make_environment(config.environment)->spec());
}

class RoleProcess {
public:
  RoleProcess(caf::actor_system& system, const RunConfig& config, const ProcessOrder& order,
              const std::shared_ptr<const ClusterKeys>& keys)
      : system_(system),
        config_(config),
        order_(order),
        any_port_("tcp://" + order.address + ":*"),
        keys_(keys ? std::shared_ptr<const env::wire::DeploymentKeys>(keys, &keys->wire) : nullptr),
        remoting_(system, {.keys = keys}),
        role_(role_named(order.role)),
        transitions_(config.workload ? replay::TransitionSpec() : transitions_of(config)),
        context_(1, keys_),
        self_(system, true) {
    wiring_.index = order.index;
    wiring_.transitions = transitions_;
    wire::Life life;
    life.set_role(order.role);
    life.set_index(order.index);
    life.set_epoch(order.epoch);
    life.set_incarnation(order.incarnation);
    life.set_process(::getpid());
    life_ = encode(life);
  }

  int run() {
    auto head = remoting_.connect<SupervisorActor>(order_.head_host, order_.head_port);
    self_->monitor(head);
    const auto told = greet(head);
    headless_ = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(told.lost_seconds()));
    connect(head, told);
    const caf::actor mine = spawn_role(system_, config_, role_, wiring_);
    self_->monitor(mine);
    serve(mine, told);
    self_->send(head, joined_atom_v, life_, mine, caf::actor(self_), endpoint_);
    const int code = wait(std::move(head), mine);
    leave(mine);
    return code;
  }

private:
  wire::Wiring greet(const SupervisorActor& head) {
    wire::Wiring told;
    std::string problem;
    self_->request(head, kJoinDeadline, hello_atom_v, life_)
        .receive([&](const ProtoBytes& encoded) { told = decode<wire::Wiring>(encoded); },
                 [&](const caf::error& error) { problem = explain(system_, error); });
    if (!problem.empty())
      throw std::runtime_error("this process could not join the run: " + problem);
    return told;
  }

  void connect(const SupervisorActor& head, const wire::Wiring& told) {
    wiring_.incarnation = told.incarnation();
    wiring_.steps_before = told.done_steps();
    wiring_.environments = told.environments();
    wiring_.remote_shards = {
        .context = &context_,
        .endpoints = {told.shard_endpoints().begin(), told.shard_endpoints().end()}};
    const std::vector<std::string> servers(told.server_endpoints().begin(),
                                           told.server_endpoints().end());
    if (has_endpoint()) {
      wiring_.context = std::make_shared<env::wire::Context>(1, keys_);
      const auto& all = role_ == Role::replay ? wiring_.remote_shards.endpoints : servers;
      const auto index = static_cast<std::size_t>(wiring_.index);
      const std::string before = index < all.size() ? own_place(all[index]) : "";
      wiring_.endpoint = before.empty() ? any_port_ : before;
    }
    if (role_ != Role::learner)
      return;
    wiring_.device = device_of_learner(config_, true, wiring_.index);
    if (has_strategy(config_))
      wiring_.strategy = [this, head, servers, told]() -> std::shared_ptr<learner::Strategy> {
        auto options = strategy_of(config_, true, servers);
        options.devices = {{wiring_.device}};
        options.keys = keys_;
        options.rendezvous = [this, head, patience = options.communicator.connect_timeout] {
          return c10::make_intrusive<ActorStore>(system_, head, life_, patience);
        };
        const std::shared_ptr<learner::Strategy> made =
            learner::make_strategy(options, topology_of_learner(told));
        const std::scoped_lock lock(strategy_mutex_);
        strategy_ = made;
        return made;
      };
    if (wiring_.index == 0) {
      port_ = std::make_unique<ParameterPort>(context_, any_port_);
      endpoint_ = port_->publisher.endpoint();
      wiring_.parameters =
          system_.spawn(parameter_actor, std::function<void(const Parameters&)>(
                                             [this](const Parameters& p) { port_->publish(p); }));
    }
  }

  collectives::ProcessTopology topology_of_learner(const wire::Wiring& told) const {
    collectives::ProcessTopology place;
    place.rank = place.local_rank = wiring_.index;
    place.size = place.local_size = config_.learner.replicas;
    place.address = order_.address;
    place.source = "run";
    place.trusted_network = told.trusted_network();
    if (told.learner_nodes_size() != place.size)
      return place;
    const auto& names = told.learner_nodes();
    const std::string& here = names.Get(wiring_.index);
    place.local_rank =
        static_cast<int>(std::count(names.begin(), names.begin() + wiring_.index, here));
    place.local_size = static_cast<int>(std::count(names.begin(), names.end(), here));
    return place;
  }

  /// Returns the former endpoint without its key if it was on this host, otherwise "".
  std::string own_place(const std::string& endpoint) const {
    const std::string address = env::wire::split_endpoint(endpoint).address;
    return address.starts_with("tcp://" + order_.address + ":") ? address : "";
  }

  bool has_endpoint() const { return role_ == Role::replay || role_ == Role::parameter_server; }

  void serve(const caf::actor& mine, const wire::Wiring& told) {
    if (has_endpoint()) {
      std::string problem;
      self_->request(mine, kJoinDeadline, hello_atom_v)
          .receive([this](const std::string& endpoint) { endpoint_ = endpoint; },
                   [&](const caf::error& error) { problem = explain(system_, error); });
      if (problem.empty())
        return;
      self_->receive( // the reason why the actor cannot answer
          [&](const caf::down_msg& down) { problem = explain(system_, down.reason); },
          caf::after(kFarewell) >> [] {});
      throw std::runtime_error(problem);
    } else if (role_ != Role::learner) {
      feed_parameters(mine, told);
    }
  }

  void feed_parameters(const caf::actor& mine, const wire::Wiring& told) {
    const auto floats = config_.agent->make_policy(transitions_)->parameter_count();
    feed_.reset();
    feed_ = std::make_unique<ParameterFeed>(context_, told.parameter_endpoint(),
                                            static_cast<std::size_t>(floats), mine);
    parameter_endpoint_ = told.parameter_endpoint();
  }

  /// Handles a change of endpoints.
  void rewire(const caf::actor& mine, const wire::Wiring& told) {
    auto& known = wiring_.remote_shards.endpoints;
    const auto count =
        std::min(known.size(), static_cast<std::size_t>(told.shard_endpoints_size()));
    for (std::size_t i = 0; i < count; ++i) {
      const auto& now = told.shard_endpoints(static_cast<int>(i));
      if (known[i] == now || now.empty()) // a new head does not know all endpoints at once
        continue;
      known[i] = now;
      if (role_ == Role::environment || role_ == Role::learner)
        self_->send(mine, wire_atom_v, static_cast<std::uint32_t>(i), now);
    }
    if (feed_ && !told.parameter_endpoint().empty()
        && told.parameter_endpoint() != parameter_endpoint_)
      feed_parameters(mine, told);
  }

  int on_down(const caf::down_msg& down, const SupervisorActor& head, const caf::actor& mine) {
    if (down.source == mine.address()) {
      if (down.reason == caf::exit_reason::user_shutdown || !down.reason)
        return 0;
      std::fprintf(stderr, "%s actor %d: %s\n", role_name(role_), wiring_.index,
                   explain(system_, down.reason).c_str());
      return 1;
    }
    if (down.source == head.address() && !search_until_)
      search_until_ = Clock::now() + headless_;
    return -1;
  }

  /// Waits until the head stops this process or gives it up. While the connection is broken the
  /// actor keeps its state, and a new head at the same address may take it over. A silent head is
  /// waited for; a node notices it, and ends its processes.
  int wait(SupervisorActor head, const caf::actor& mine) {
    int code = -1;
    while (code < 0) {
      if (search_until_ && !find_head(head, mine) && Clock::now() > *search_until_)
        return lost_head("did not return within "
                         + number(std::chrono::duration<double>(headless_).count())
                         + " s after their connection broke");
      self_->receive(
          [&](const caf::down_msg& down) { code = on_down(down, head, mine); },
          [&](wire_atom, const ProtoBytes& told) { rewire(mine, decode<wire::Wiring>(told)); },
          [&](lost_atom, const std::string& who) { leave_collective(who); },
          [&](stop_atom) { code = lost_head("has given up on it"); },
          caf::after(search_until_ ? Clock::duration(kSearch) : kRest) >> [] {});
    }
    return code;
  }

  /// Tries once to introduce the process to the head that listens there, which takes it over or
  /// stops it.
  bool find_head(SupervisorActor& head, const caf::actor& mine) {
    try {
      const auto left = std::max(*search_until_ - Clock::now(), Clock::duration(kSearch));
      head = remoting_.connect<SupervisorActor>(
          order_.head_host, order_.head_port,
          std::chrono::duration_cast<std::chrono::milliseconds>(left));
    } catch (const std::runtime_error&) {
      return false;
    }
    search_until_.reset();
    self_->monitor(head);
    self_->send(head, joined_atom_v, life_, mine, caf::actor(self_), endpoint_);
    return true;
  }

  /// Aborts the learner's wait for a lost rank.
  void leave_collective(const std::string& why) {
    std::shared_ptr<learner::Strategy> strategy;
    {
      const std::scoped_lock lock(strategy_mutex_);
      strategy = strategy_.lock();
    }
    if (strategy)
      strategy->abort(why);
  }

  int lost_head(const std::string& why) const {
    std::fprintf(stderr, "%s actor %d ends: its head %s\n", role_name(role_), wiring_.index,
                 why.c_str());
    return 1;
  }

  void leave(const caf::actor& mine) {
    feed_.reset();
    if (wiring_.parameters)
      caf::anon_send_exit(*wiring_.parameters, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(mine, caf::exit_reason::user_shutdown);
  }

  caf::actor_system& system_;
  const RunConfig& config_;
  const ProcessOrder& order_;
  std::string any_port_;
  std::shared_ptr<const env::wire::DeploymentKeys> keys_;
  Remoting remoting_;
  Role role_;
  ProtoBytes life_;
  Clock::duration headless_{}; // maximum time without a head; then the process ends
  std::optional<Clock::time_point> search_until_; // set while there is no connection to a head
  replay::TransitionSpec transitions_;
  env::wire::Context context_;
  RoleWiring wiring_;
  std::string endpoint_;
  std::string parameter_endpoint_;
  std::unique_ptr<ParameterPort> port_;
  std::unique_ptr<ParameterFeed> feed_;
  std::mutex strategy_mutex_;
  std::weak_ptr<learner::Strategy> strategy_; // the learner's
  caf::scoped_actor self_;
};

} // namespace

int run_actor(const RunConfig& config, const ProcessOrder& order,
              const std::shared_ptr<const ClusterKeys>& keys) {
  SystemConfig system_config(true);
  caf::actor_system system(system_config);
  RoleProcess process(system, config, order, keys);
  return process.run();
}

} // namespace troupe::actors
