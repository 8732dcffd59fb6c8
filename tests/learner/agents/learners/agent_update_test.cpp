// Updates without a read by the host in between, which a GPU makes as one graph, on the CPU.
#include "tests/doctest_torch.hpp"

#include <memory>
#include <string>
#include <vector>

#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/sac/sac.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/small_agent.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

struct Setting {
  std::string name;
  AgentPtr agent;
  D4pgSpec spec;
};

std::vector<Setting> settings() {
  std::vector<Setting> made;
  for (const AgentKind& kind : agent_kinds())
    made.push_back(
        {kind.name, small_agent(kind, "precision: \"float64\""), {small_transitions(kind)}});
  const AgentKind& dqn = *find_agent("dqn");
  made.push_back({"dqn, all switches",
                  small_agent(dqn, "precision: \"float64\" dueling: true noisy: true atoms: 7 "
                                   "value_minimum: -5 value_maximum: 5 target_period: 3"),
                  {small_transitions(dqn)}});
  const AgentKind& td3 = *find_agent("td3");
  made.push_back({"td3, clipped, with blocks and imitation",
                  small_agent(td3, "precision: \"float64\" gradient_norm: 1e-2 imitation: 2.5 "
                                   "normalise_observations: true"),
                  {small_transitions(td3)}});
  made.push_back({"sac, spherical",
                  make_sac_agent({.policy_layers = {16, 16},
                                  .critic_layers = {24, 24},
                                  .precision = "float64",
                                  .spherical = true}),
                  {small_transitions(*find_agent("sac"))}});
  return made;
}

std::unique_ptr<Replica> built(const Setting& setting, ReplicaContext& context,
                               UpdateCapture capture) {
  at::set_num_threads(1); // tests run side by side
  auto replica = setting.agent->make_replica(setting.spec.transition);
  dynamic_cast<SavedReplica&>(*replica).set_capture(capture);
  replica->build(context);
  return replica;
}

void check_alike(const TensorMap& one, const TensorMap& other) {
  REQUIRE(one.size() == other.size());
  for (const auto& [name, tensor] : one) {
    CAPTURE(name);
    CHECK(at::allclose(tensor.to(at::kDouble), other.at(name).to(at::kDouble), 1e-4, 1e-6));
  }
}

} // namespace

TEST_CASE("a captured update of every agent is the usual one") {
  for (const Setting& setting : settings()) {
    CAPTURE(setting.name);
    ReplicaContext context(nullptr, 3);
    context.set_learning_rates(
        {.shape = ScheduleShape::cosine, .warmup_steps = 2, .total_steps = 9});
    const auto usual = built(setting, context, UpdateCapture::never);
    const auto captured = built(setting, context, UpdateCapture::always);
    for (std::uint64_t i = 0; i < 8; ++i) {
      CAPTURE(i);
      TensorMap batch = random_batch(setting.spec, i == 7 ? 5 : 6, 10 + i);
      const bool weighted = i > 3;
      if (weighted)
        batch["weight"] = uniform({batch.at("reward").size(0)}, 5, 0, 1);
      const Metrics expected = usual->step_fn(context, batch);
      const Metrics metrics = captured->step_fn(context, batch);
      REQUIRE(metrics.size() == expected.size());
      for (const auto& [name, value] : expected) {
        CAPTURE(name);
        CHECK(metrics.at(name) == doctest::Approx(value).epsilon(1e-4).scale(1e-2));
      }
      REQUIRE(captured->priorities().defined() == usual->priorities().defined());
      if (usual->priorities().defined())
        CHECK(at::allclose(captured->priorities(), usual->priorities(), 1e-4, 1e-6));
      check_alike(captured->parameters(), usual->parameters());
      check_alike(captured->optimizer_state(), usual->optimizer_state());
    }
  }
}

TEST_CASE("captured updates continue from a saved state of the usual ones, and the reverse") {
  for (const Setting& setting : settings()) {
    CAPTURE(setting.name);
    ReplicaContext context(nullptr, 3);
    auto from = built(setting, context, UpdateCapture::never);
    auto to = built(setting, context, UpdateCapture::always);
    for (std::uint64_t round = 0; round < 2; ++round) {
      for (std::uint64_t i = 0; i < 4; ++i)
        from->step_fn(context, random_batch(setting.spec, 6, 10 * round + i));
      to->load(copied(from->parameters()), copied(from->optimizer_state()));
      const TensorMap batch = random_batch(setting.spec, 6, 90 + round);
      from->step_fn(context, batch);
      to->step_fn(context, batch);
      check_alike(to->parameters(), from->parameters());
      check_alike(to->optimizer_state(), from->optimizer_state());
      std::swap(from, to);
    }
  }
}
