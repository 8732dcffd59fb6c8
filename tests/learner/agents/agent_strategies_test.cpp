// Every agent under the strategies whose replicas do not step together.
#include "tests/learner/replicas/line_fit.hpp"

#include "tests/doctest_torch.hpp"

#include "learner/gradients/local_sgd_rule.hpp"
#include "learner/parameter_server/parameter_server_rule.hpp"
#include "learner/replicas/strategy_options.hpp"
#include "tests/learner/agents/fed_replica.hpp"
#include "tests/learner/agents/small_agent.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;
using namespace std::chrono_literals;

namespace {

constexpr int kReplicas = 2;
constexpr int kSteps = 12;

/// Trains replicas, each on its part of every batch, and returns their parameters, which must be
/// finite and differ from the initial ones.
std::vector<TensorMap> train(const AgentKind& kind,
                             const std::function<ReplicaAssignment(int)>& assignment,
                             int replicas = kReplicas) {
  const AgentPtr agent = small_agent(kind);
  const replay::TransitionSpec spec = small_transitions(kind);
  const std::int64_t share = kBatch / replicas;
  std::vector<TensorMap> trained(static_cast<std::size_t>(replicas));
  const auto errors = on_threads(replicas, [&](int id) {
    at::set_num_threads(1);
    ReplicaContext context(assignment(id), 1);
    const auto replica = agent->make_replica(small_transitions(kind));
    replica->build(context);
    const TensorMap before = copied(replica->parameters());
    for (int step = 0; step < kSteps; ++step) {
      TensorMap batch = random_batch(spec, kBatch, 10 * static_cast<std::uint64_t>(step));
      for (auto& [name, tensor] : batch)
        tensor = tensor.narrow(0, id * share, share).contiguous();
      replica->step_fn(context, batch);
    }
    const TensorMap after = copied(replica->parameters());
    if (equal(before, after))
      throw std::runtime_error("nothing was learned");
    for (const auto& [name, tensor] : after)
      if (!tensor.isfinite().all().item<bool>())
        throw std::runtime_error(name + " is not finite");
    trained[static_cast<std::size_t>(id)] = after;
  });
  CHECK(errors == std::vector<std::string>(static_cast<std::size_t>(replicas)));
  return trained;
}

} // namespace

TEST_CASE("Every agent learns with asynchronous parameter servers and with backup workers") {
  for (const AgentKind& kind : agent_kinds())
    for (const auto& options :
         {ParameterServerOptions{.workers = kReplicas, .max_lead = 1}, with_backup_workers(2, 1)}) {
      CAPTURE(kind.name);
      LocalParameterServer server(options, 20s);
      train(kind, [&](int id) {
        return ReplicaAssignment{.replica_id = id,
                                 .num_replicas = kReplicas,
                                 .update_rule = local_parameter_server_rules(server, id)};
      });
      CHECK(server.version(0) >= kSteps);
    }
}

TEST_CASE("Every agent learns with local SGD") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const auto communicators = collectives::make_thread_communicators(kReplicas, {.timeout = 20s});
    train(kind, [&](int id) {
      auto* communicator = communicators[static_cast<std::size_t>(id)].get();
      return ReplicaAssignment{.replica_id = id,
                               .num_replicas = kReplicas,
                               .communicator = communicator,
                               .update_rule = local_sgd_rules(communicator, {.period = 5})};
    });
  }
}

TEST_CASE("Every agent learns with central storage, and its replicas stay equal") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const auto strategy = make_strategy(parse_strategy("central_storage replicas=2"));
    const auto trained = train(kind, [&](int id) { return strategy->assignment(id); });
    CHECK(equal(trained[0], trained[1]));
  }
}

TEST_CASE("Every agent learns with sync groups, and the replicas of a group stay equal") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const auto strategy = make_strategy(parse_strategy("sync_groups replicas=4 sync_groups=2"));
    const auto trained = train(
        kind, [&](int id) { return strategy->assignment(id); }, 4);
    CHECK(equal(trained[0], trained[1]));
    CHECK(equal(trained[2], trained[3]));
  }
}
