#include <cstdio>
#include <mutex>
#include <thread>

#include <caf/io/all.hpp>

#include "actors/messages.pb.h"
#include "actors/parameter_actor.hpp"
#include "actors/replay_proxy_actor.hpp"
#include "actors/roles.hpp"
#include "actors/run.hpp"
#include "actors/strategies.hpp"
#include "actors/system.hpp"
#include "env/wire/publication.hpp"
#include "learner/collector.hpp"

namespace troupe::actors {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kJoinDeadline{60};
constexpr std::chrono::seconds kFarewell{1};

struct ParameterFeed { // from the learner's process to an actor of this one
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

/// A publisher that several threads may reach, and that repeats itself for those who come late.
struct ParameterPort {
  env::wire::Publisher publisher;
  std::mutex mutex;
  std::jthread thread;

  explicit ParameterPort(env::wire::Context& context)
      : publisher(context, "tcp://127.0.0.1:*"), thread([this](const std::stop_token& stop) {
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
  return learner::transition_spec(env::make_environment(config.environment)->spec(),
                                  config.replay.n_step, config.replay.discount);
}

class Node {
public:
  Node(caf::actor_system& system, const RunConfig& config, Role role, std::int32_t index)
      : system_(system),
        config_(config),
        role_(role),
        transitions_(config.workload ? replay::TransitionSpec() : transitions_of(config)),
        self_(system, true) {
    wiring_.index = index;
    wiring_.transitions = transitions_;
  }

  int run(std::uint16_t head_port) {
    auto head = system_.middleman().remote_actor<SupervisorActor>("127.0.0.1", head_port);
    if (!head)
      throw std::runtime_error("no head at 127.0.0.1:" + std::to_string(head_port) + ": "
                               + explain(system_, head.error()));
    self_->monitor(*head);
    const auto told = greet(*head);
    connect(told);
    const caf::actor mine = spawn_role(system_, config_, role_, wiring_);
    self_->monitor(mine);
    serve(mine, told);
    self_->send(*head, joined_atom_v, std::string(role_name(role_)), wiring_.index, mine,
                endpoint_);
    return wait(*head, mine);
  }

private:
  wire::Wiring greet(const SupervisorActor& head) {
    wire::Wiring told;
    std::string problem;
    self_->request(head, kJoinDeadline, hello_atom_v, std::string(role_name(role_)), wiring_.index)
        .receive([&](const Encoded& encoded) { told = decode<wire::Wiring>(encoded); },
                 [&](const caf::error& error) { problem = explain(system_, error); });
    if (!problem.empty())
      throw std::runtime_error("the head did not let this process in: " + problem);
    return told;
  }

  void connect(const wire::Wiring& told) {
    wiring_.incarnation = told.incarnation();
    wiring_.steps_before = told.done_steps();
    if (role_ == Role::environment || role_ == Role::learner)
      for (const auto& endpoint : told.shard_endpoints())
        wiring_.shards.push_back(
            system_.spawn<caf::detached>(replay_proxy_actor, &context_, endpoint, transitions_));
    const std::vector<std::string> servers(told.server_endpoints().begin(),
                                           told.server_endpoints().end());
    if (role_ == Role::parameter_server) {
      wiring_.context = std::make_shared<env::wire::Context>();
      wiring_.endpoint = servers.at(static_cast<std::size_t>(wiring_.index));
    }
    if (role_ != Role::learner)
      return;
    if (has_strategy(config_))
      wiring_.strategy = [this, servers,
                          port = told.collective_port()]() -> std::shared_ptr<learner::Strategy> {
        const int replicas = config_.learner.replicas;
        collectives::Place place;
        place.rank = place.local_rank = wiring_.index;
        place.size = place.local_size = replicas;
        place.nodes = 1;
        place.rendezvous_port = port;
        place.source = "run";
        return learner::make_strategy(strategy_of(config_, true, servers), place);
      };
    if (wiring_.index == 0) {
      port_ = std::make_unique<ParameterPort>(context_);
      endpoint_ = port_->publisher.endpoint();
      wiring_.parameters =
          system_.spawn(parameter_actor, std::function<void(const Parameters&)>(
                                             [this](const Parameters& p) { port_->publish(p); }));
    }
  }

  void serve(const caf::actor& mine, const wire::Wiring& told) {
    if (role_ == Role::replay) {
      server_ = serve_shard(system_, context_, caf::actor_cast<ReplayActor>(mine), transitions_);
      endpoint_ = server_->endpoint();
    } else if (role_ == Role::parameter_server) {
      std::string problem;
      self_->request(mine, kJoinDeadline, hello_atom_v)
          .receive([this](const std::string& endpoint) { endpoint_ = endpoint; },
                   [&](const caf::error& error) { problem = explain(system_, error); });
      if (problem.empty())
        return;
      self_->receive( // why there is nobody to answer
          [&](const caf::down_msg& down) { problem = explain(system_, down.reason); },
          caf::after(kFarewell) >> [] {});
      throw std::runtime_error(problem);
    } else if (role_ != Role::learner) {
      const auto floats =
          learner::make_d4pg_policy(config_.agent, {transitions_})->parameter_count();
      feed_ = std::make_unique<ParameterFeed>(context_, told.parameter_endpoint(),
                                              static_cast<std::size_t>(floats), mine);
    }
  }

  int wait(const SupervisorActor& head, const caf::actor& mine) {
    int code = -1;
    while (code < 0)
      self_->receive([&](const caf::down_msg& down) {
        if (down.source == mine.address()) {
          code = down.reason == caf::exit_reason::user_shutdown || !down.reason ? 0 : 1;
          if (code == 1)
            std::fprintf(stderr, "%s actor %d: %s\n", role_name(role_), wiring_.index,
                         explain(system_, down.reason).c_str());
        } else if (down.source == head.address()) {
          code = 1; // without its head nothing here makes sense
        }
      });
    feed_.reset();
    server_.reset();
    for (const auto& shard : wiring_.shards)
      caf::anon_send_exit(shard, caf::exit_reason::user_shutdown);
    if (wiring_.parameters)
      caf::anon_send_exit(*wiring_.parameters, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(mine, caf::exit_reason::user_shutdown);
    return code;
  }

  caf::actor_system& system_;
  const RunConfig& config_;
  Role role_;
  replay::TransitionSpec transitions_;
  env::wire::Context context_;
  RoleWiring wiring_;
  std::string endpoint_;
  std::unique_ptr<ParameterPort> port_;
  std::unique_ptr<ParameterFeed> feed_;
  std::unique_ptr<replay::ShardServer> server_;
  caf::scoped_actor self_;
};

} // namespace

int run_node(const RunConfig& config, const std::string& role, int index, std::uint16_t head_port) {
  SystemConfig system_config(true);
  caf::actor_system system(system_config);
  Node node(system, config, role_named(role), index);
  return node.run(head_port);
}

} // namespace troupe::actors
