// Networks that begin again, of every agent.
#include "learner/agents/learners/resets.hpp"

#include "tests/doctest_torch.hpp"

#include <map>
#include <set>

#include "learner/acting/collector.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/fed_replica.hpp"
#include "tests/learner/agents/small_agent.hpp"
#include "tests/learner/replicas.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

constexpr std::uint64_t kSeed = 12;

std::unique_ptr<Replica> resetting(const AgentKind& kind, const TrainingConfig::Resets& resets) {
  at::set_num_threads(1);
  return with_resets(resets, kSeed, [agent = small_agent(kind), spec = small_transitions(kind)] {
    return agent->make_replica(spec);
  });
}

void learn(const AgentKind& kind, Replica& replica, ReplicaContext& context, int from, int to) {
  for (int i = from; i < to; ++i)
    replica.step_fn(context,
                    random_batch({small_transitions(kind)}, kBatch, static_cast<std::uint64_t>(i)));
}

/// The parameters of a replica that begins with the networks of reset `number`.
TensorMap fresh(const AgentKind& kind, std::uint64_t number) {
  const auto replica = small_agent(kind)->make_replica(small_transitions(kind));
  ReplicaContext context(nullptr, split_seed(kSeed, {number}));
  replica->build(context);
  return copied(replica->parameters());
}

std::string without_target(const std::string& name) {
  return name.starts_with("target.") ? name.substr(7) : name;
}

/// Of an encoder or of no network: what stays.
bool stays(const AgentKind& kind, const TensorMap& state, const std::string& name) {
  const std::string own = without_target(name);
  return !state.contains("adam.exp_avg." + own) || own.starts_with("encoder.")
         || (kind.name == "mrq" && !own.starts_with("critic") && !own.starts_with("policy."));
}

} // namespace

TEST_CASE("resets: networks, targets and optimizers of every agent begin again, encoders stay") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const auto replica = resetting(kind, {.period = 4});
    const auto plain = resetting(kind, {});
    ReplicaContext context(nullptr, 3);
    ReplicaContext same(nullptr, 3);
    replica->build(context);
    plain->build(same);
    learn(kind, *replica, context, 0, 4);
    learn(kind, *plain, same, 0, 4);
    const TensorMap without = plain->parameters();
    const TensorMap state = replica->optimizer_state();
    const TensorMap first = fresh(kind, 1);
    std::size_t began = 0;
    for (const auto& [name, tensor] : replica->parameters()) {
      CAPTURE(name);
      const bool kept = stays(kind, state, name);
      CHECK(at::equal(tensor, (kept ? without : first).at(name)));
      began += kept ? 0 : 1;
    }
    CHECK(began > 1);
    CHECK(state.at("counters.updates").item<std::int64_t>() == 4);
    for (const auto& [name, tensor] : state) {
      CAPTURE(name);
      if (name.starts_with("adam.")
          && !(kind.name == "mrq" && stays(kind, state, name.substr(name.find('.', 5) + 1))))
        CHECK(tensor.abs().max().item<double>() == 0);
      if (name.ends_with("adam_steps"))
        CHECK((tensor.item<std::int64_t>() > 0) == (name == "counters.encoder_adam_steps"));
    }
    learn(kind, *replica, context, 4, 11); // behind a second reset
    CHECK_FALSE(equal(copied(replica->parameters()), fresh(kind, 2)));
    for (const auto& [name, tensor] : replica->parameters()) {
      CAPTURE(name);
      CHECK(tensor.isfinite().all().item<bool>());
    }
  }
}

TEST_CASE("resets: last layers alone begin again, and none behind the last update") {
  for (const char* name : {"td3", "dqn", "ppo"}) {
    CAPTURE(name);
    const AgentKind& kind = *find_agent(name);
    const auto replica = resetting(kind, {.period = 2, .last_update = 3, .what = "last_layers"});
    ReplicaContext context(nullptr, 3);
    replica->build(context);
    learn(kind, *replica, context, 0, 2);
    const TensorMap first = fresh(kind, 1);
    std::set<std::string> began;
    for (const auto& [parameter, tensor] : replica->parameters())
      if (tensor.numel() > 1 && at::equal(tensor, first.at(parameter))
          && !parameter.ends_with("bias"))
        began.insert(without_target(parameter));
    const std::map<std::string, std::set<std::string>> wanted{
        {"td3", {"critic1.output.weight", "critic2.output.weight", "policy.output.weight"}},
        {"dqn", {"advantage.weight"}},
        {"ppo", {"policy.weight", "value.weight"}}};
    CHECK(began == wanted.at(name));
    learn(kind, *replica, context, 2, 4);
    const TensorMap second = fresh(kind, 2);
    for (const auto& [parameter, tensor] : replica->parameters())
      CHECK_FALSE((parameter.ends_with("weight") && at::equal(tensor, second.at(parameter))));
  }
}

TEST_CASE("resets: a resumed learner continues bit for bit, with the same networks") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const auto run = [&](int restart_at) {
      auto replica = resetting(kind, {.period = 4});
      ReplicaContext context(nullptr, 3);
      replica->build(context);
      if (restart_at > 0) {
        learn(kind, *replica, context, 0, restart_at);
        const TensorMap parameters = copied(replica->parameters());
        const TensorMap state = copied(replica->optimizer_state());
        ReplicaContext other(nullptr, 99);
        replica = resetting(kind, {.period = 4});
        replica->build(other);
        replica->load(parameters, state);
      }
      learn(kind, *replica, context, std::max(restart_at, 0), 10);
      return copied(replica->parameters());
    };
    const TensorMap whole = run(-1);
    for (const int restart_at : {3, 4, 5})
      CHECK(equal(whole, run(restart_at)));
  }
}

TEST_CASE("resets: replicas of different seeds begin again with equal networks") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const D4pgSpec spec{small_transitions(kind)};
    Replicas run([&] { return std::make_unique<FedReplica>(resetting(kind, {.period = 5}), spec); },
                 2);
    run.run(5);
    CHECK(equal(copied(run.replica(0).parameters()), copied(run.replica(1).parameters())));
    run.run(4);
    CHECK(equal(copied(run.replica(0).parameters()), copied(run.replica(1).parameters())));
  }
}

TEST_CASE("resets: a replica with networks of its own is refused by the key") {
  const AgentKind& kind = agent_kinds().front();
  const auto strange = [&]() -> std::unique_ptr<Replica> {
    return std::make_unique<FedReplica>(small_agent(kind)->make_replica(small_transitions(kind)),
                                        D4pgSpec{small_transitions(kind)});
  };
  CHECK_THROWS_WITH_AS(with_resets({.period = 7}, 1, strange),
                       doctest::Contains("learner.resets.period is 7"), std::invalid_argument);
  CHECK(with_resets({}, 1, strange) != nullptr);
}

TEST_CASE("resets: keys that contradict each other are named") {
  TrainingConfig config;
  config.resets = {.period = 100, .last_update = 100};
  CHECK(config.problems().empty());
  config.resets = {.last_update = 100};
  REQUIRE(config.problems().size() == 1);
  CHECK(config.problems()[0].text.find("learner.resets.period is 0") != std::string::npos);
  config.resets = {.period = 101, .last_update = 100};
  REQUIRE(config.problems().size() == 1);
  CHECK(config.problems()[0].key == "resets.last_update");
  CHECK(config.problems()[0].text.find("is 100; it must be at least") == 0);
}
