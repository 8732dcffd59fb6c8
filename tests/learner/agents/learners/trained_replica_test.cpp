// Resets and diagnosis of the networks of every agent.
#include "learner/agents/learners/trained_replica.hpp"

#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "learner/acting/collector.hpp"
#include "learner/agents/learners/saved_replica.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/fed_replica.hpp"
#include "tests/learner/agents/small_agent.hpp"
#include "tests/learner/replicas.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

constexpr std::uint64_t kSeed = 12;
constexpr const char* kSphericalKeys = "spherical: true policy_blocks: 1 critic_blocks: 1 "
                                       "normalise_observations: true atoms: 21 policy_layers: 16 "
                                       "critic_layers: 16 ";

std::unique_ptr<Replica> resetting(const AgentKind& kind, const TrainingConfig::Resets& resets,
                                   std::int64_t diagnostics_period = 0,
                                   const std::string& keys = "") {
  at::set_num_threads(1);
  TrainingConfig config;
  config.resets = resets;
  config.diagnostics_period = diagnostics_period;
  return trained_replica(config, kSeed,
                         [agent = small_agent(kind, keys), spec = small_transitions(kind, keys)] {
                           return agent->make_replica(spec);
                         });
}

void learn(const AgentKind& kind, Replica& replica, ReplicaContext& context, int from, int to,
           const std::string& keys = "") {
  for (int i = from; i < to; ++i)
    replica.step_fn(context, random_batch({small_transitions(kind, keys)}, kBatch,
                                          static_cast<std::uint64_t>(i)));
}

/// The parameters of a replica whose networks begin as those of reset `number`.
TensorMap fresh(const AgentKind& kind, std::uint64_t number) {
  const auto replica = small_agent(kind)->make_replica(small_transitions(kind));
  ReplicaContext context(nullptr, split_seed(kSeed, {number}));
  replica->build(context);
  return copied(replica->parameters());
}

/// Each update reports the number of the update that registered its values.
class HostNumberReplica final : public SavedReplica {
public:
  void build(ReplicaContext& context) override { begin(context, "float32"); }
  Metrics step_fn(ReplicaContext&, const TensorMap& batch) override {
    const double number = static_cast<double>(updates() + 1);
    Metrics metrics = make_update(batch, 0, [this, number](const TensorMap&) {
      in_update().tell("number", in_update().number([number] { return number; }));
    });
    count_updates(1);
    return metrics;
  }
  at::Tensor action_values(const TensorMap&) override { return at::zeros({2}); }
};

std::string without_target(const std::string& name) {
  return name.starts_with("target.") ? name.substr(7) : name;
}

/// Whether a reset keeps the tensor, because it belongs to an encoder or to no network.
bool stays(const AgentKind& kind, const TensorMap& state, const std::string& name) {
  const std::string own = without_target(name);
  return !state.contains("adam.exp_avg." + own) || own.starts_with("encoder.")
         || (kind.name == "mrq" && !own.starts_with("critic") && !own.starts_with("policy."));
}

} // namespace

TEST_CASE(
    "Resets: every agent's networks, targets and optimizers are reset, and encoders are kept") {
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
    learn(kind, *replica, context, 4, 11); // after a second reset
    CHECK_FALSE(equal(copied(replica->parameters()), fresh(kind, 2)));
    for (const auto& [name, tensor] : replica->parameters()) {
      CAPTURE(name);
      CHECK(tensor.isfinite().all().item<bool>());
    }
  }
}

TEST_CASE("Resets: only the last layers are reset, and none after the last update") {
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
        {"dqn", {"advantage.output.weight"}},
        {"ppo", {"policy.weight", "value.weight"}}};
    CHECK(began == wanted.at(name));
    learn(kind, *replica, context, 2, 4);
    const TensorMap second = fresh(kind, 2);
    for (const auto& [parameter, tensor] : replica->parameters())
      CHECK_FALSE((parameter.ends_with("weight") && at::equal(tensor, second.at(parameter))));
  }
}

TEST_CASE("Resets: a resumed learner continues bit for bit with the same networks") {
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

TEST_CASE("Resets: replicas with different seeds are reset to equal networks") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const replay::TransitionSpec spec = small_transitions(kind);
    Replicas run([&] { return std::make_unique<FedReplica>(resetting(kind, {.period = 5}), spec); },
                 2);
    run.run(5);
    CHECK(equal(copied(run.replica(0).parameters()), copied(run.replica(1).parameters())));
    run.run(4);
    CHECK(equal(copied(run.replica(0).parameters()), copied(run.replica(1).parameters())));
  }
}

TEST_CASE("Resets: a replica that manages its own networks is refused by key") {
  const AgentKind& kind = agent_kinds().front();
  const auto strange = [&]() -> std::unique_ptr<Replica> {
    return std::make_unique<FedReplica>(small_agent(kind)->make_replica(small_transitions(kind)),
                                        small_transitions(kind));
  };
  TrainingConfig config;
  CHECK(trained_replica(config, 1, strange) != nullptr);
  config.diagnostics_period = 8;
  CHECK_THROWS_WITH_AS(trained_replica(config, 1, strange),
                       doctest::Contains("learner.diagnostics_period is 8"), std::invalid_argument);
  config.resets.period = 7;
  CHECK_THROWS_WITH_AS(trained_replica(config, 1, strange),
                       doctest::Contains("learner.resets.period is 7"), std::invalid_argument);
}

TEST_CASE("Resets: contradictory keys are named") {
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

TEST_CASE("Diagnostics: every agent reports them, and its parameters do not depend on them") {
  const auto names = TrainingConfig::diagnoses();
  const std::set<std::string> with_tanh = {"d4pg", "drqv2", "mrq", "sac", "td3"};
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const auto watched = resetting(kind, {}, 3);
    const auto plain = resetting(kind, {});
    ReplicaContext context(nullptr, 3);
    ReplicaContext same(nullptr, 3);
    watched->build(context);
    plain->build(same);
    Metrics diagnosis;
    for (int i = 0; i < 7; ++i) {
      const TensorMap batch =
          random_batch({small_transitions(kind)}, kBatch, static_cast<std::uint64_t>(i));
      Metrics metrics = watched->step_fn(context, batch);
      Metrics usual = plain->step_fn(same, batch);
      for (const auto& [name, value] : usual) {
        CHECK(metrics.at(name) == value);
        metrics.erase(name);
      }
      CHECK((metrics != diagnosis) == (i % 3 == 0)); // the last ones are kept
      diagnosis = metrics;
    }
    CHECK(equal(copied(watched->parameters()), copied(plain->parameters())));
    for (const auto& [name, value] : diagnosis) {
      CAPTURE(name);
      CHECK(std::find(names.begin(), names.end(), name) != names.end());
      CHECK(std::isfinite(value));
      if (name.starts_with("dormant") || name == "action_saturation")
        CHECK((value >= 0 && value <= 1));
      else
        CHECK(value > 0);
    }
    CHECK(diagnosis.contains("feature_rank") == (kind.name != "bc"));
    CHECK(diagnosis.size() >= (kind.name == "bc" ? 3 : 4));
    CHECK(diagnosis.contains("action_saturation") == with_tanh.contains(kind.name));
    const bool hidden = kind.options->FindFieldByName("policy_layers") != nullptr;
    CHECK(diagnosis.contains("dormant_policy") == hidden);
  }
}

TEST_CASE("Diagnostics: the share of actions at the bounds is measured for every tanh policy") {
  const std::vector<std::pair<const char*, std::string>> agents = {
      {"d4pg", ""}, {"drqv2", ""}, {"mrq", ""}, {"sac", ""}, {"sac", kSphericalKeys}, {"td3", ""}};
  for (const auto& [name, keys] : agents)
    for (const double share : {0.0, 0.5, 1.0}) {
      CAPTURE(name);
      CAPTURE(keys);
      const AgentKind& kind = *find_agent(name);
      const auto replica = resetting(kind, {}, 1, keys);
      ReplicaContext context(nullptr, 3);
      replica->build(context);
      TensorMap parameters = copied(replica->parameters());
      const std::string last = keys.empty() ? "policy.output." : "policy.head0.output.";
      parameters.at(last + "weight").zero_(); // so that the biases are the outputs
      parameters.at(last + "bias").select(0, 0).fill_(share > 0 ? -8 : -0.1);
      parameters.at(last + "bias").select(0, 1).fill_(share > 0.5 ? 8 : 0.1);
      replica->load(parameters, replica->optimizer_state());
      learn(kind, *replica, context, 0, 1, keys); // td3's policy learns in every second update
      const Metrics metrics =
          replica->step_fn(context, random_batch({small_transitions(kind, keys)}, kBatch, 1));
      CHECK(metrics.at("action_saturation") == share);
    }
}

TEST_CASE("Diagnostics: a critic's gradient norm and dormant units are measured") {
  const AgentKind& kind = *find_agent("td3");
  const auto replica = resetting(kind, {}, 1);
  ReplicaContext context(nullptr, 3);
  replica->build(context);
  TensorMap parameters = copied(replica->parameters());
  for (const char* critic : {"critic1", "critic2"})
    parameters.at(critic + std::string(".layer1.bias")).narrow(0, 0, 15).fill_(-1000); // of 20
  replica->load(parameters, replica->optimizer_state());
  const Metrics metrics =
      replica->step_fn(context, random_batch({small_transitions(kind)}, kBatch, 1));
  CHECK(metrics.at("gradient_norm_critic")
        == doctest::Approx(metrics.at("gradient_norm")).epsilon(1e-5));
  CHECK(metrics.at("dormant_critic") >= doctest::Approx(15.0 / 44));
  CHECK(metrics.at("dormant_critic") < 20.0 / 44);
  CHECK(metrics.at("feature_rank") <= 5);
  CHECK(metrics.at("feature_rank") >= 1);
}

TEST_CASE("Action values: every agent with a value function reports them, and its updates do not "
          "depend on them") {
  const std::set<std::string> learn_them = {"d4pg", "dqn", "drqv2", "mrq", "sac", "td3"};
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const auto asked = resetting(kind, {}, 100);
    const auto plain = resetting(kind, {});
    ReplicaContext context(nullptr, 3);
    ReplicaContext same(nullptr, 3);
    asked->build(context);
    plain->build(same);
    replay::TransitionSpec spec = small_transitions(kind);
    spec.sequence_steps = 0;
    const TensorMap steps = random_batch({spec}, 9, 1); // not the steps that it learns from
    for (int i = 0; i < 3; ++i) {
      const at::Tensor values = asked->action_values(steps);
      CHECK(values.defined() == learn_them.contains(kind.name));
      if (values.defined()) {
        CHECK(values.sizes() == at::IntArrayRef({9}));
        CHECK(values.isfinite().all().item<bool>());
        CHECK((i == 0 || values.std().item<double>() > 0)); // before it, mrq knows no unit
      }
      learn(kind, *asked, context, i, i + 1);
      learn(kind, *plain, same, i, i + 1);
    }
    CHECK(equal(copied(asked->parameters()), copied(plain->parameters())));
  }
}

TEST_CASE("Action values: updates are captured again after them, because they share memory") {
  TrainingConfig config;
  config.diagnostics_period = 100;
  const auto replica = trained_replica(config, kSeed, [] {
    auto made = std::make_unique<HostNumberReplica>();
    made->set_capture(UpdateCapture::always);
    return made;
  });
  ReplicaContext context(nullptr, 3);
  replica->build(context);
  const TensorMap batch{{"reward", at::zeros({2})}};
  const auto reported = [&] { return replica->step_fn(context, batch).at("number"); };
  CHECK(reported() == 1);
  CHECK(reported() == 1); // as registered by the first update
  replica->action_values(batch);
  CHECK(reported() == 3);
}

TEST_CASE("Action values: they are in the units of returns") {
  const auto learnt = [](const char* name, const std::string& more) {
    const AgentKind& kind = *find_agent(name);
    const AgentPtr agent = small_agent(kind, more);
    const replay::TransitionSpec transitions = small_transitions(kind, more);
    const auto replica = agent->make_replica(transitions);
    ReplicaContext context(nullptr, 3);
    replica->build(context);
    for (std::uint64_t i = 0; i < 1500; ++i) {
      TensorMap batch = random_batch(transitions, kBatch, i % 20);
      batch["reward"].fill_(3);
      batch["discount"].zero_(); // so that each return is 3
      replica->step_fn(context, batch);
    }
    replay::TransitionSpec spec = transitions;
    spec.sequence_steps = 0;
    return replica->action_values(random_batch(spec, kBatch, 0)).mean().item<double>();
  };
  const std::string fast = "critic_learning_rate: 0.003 ";
  CHECK(learnt("td3", fast) == doctest::Approx(3).epsilon(0.1));
  CHECK(learnt("sac", fast) == doctest::Approx(3).epsilon(0.1));
  CHECK(learnt("d4pg", fast + "reward_scale: 2 value_minimum: 0 value_maximum: 10 atoms: 21 ")
        == doctest::Approx(3).epsilon(0.1));
  CHECK(learnt("mrq", fast) == doctest::Approx(3).epsilon(0.1));
  CHECK(learnt("dqn", "learning_rate: 0.003 ") == doctest::Approx(3).epsilon(0.1));
  CHECK(learnt("drqv2", fast) == doctest::Approx(3).epsilon(0.1));
  CHECK(learnt("sac", fast + kSphericalKeys) == doctest::Approx(3).epsilon(0.1));
}
