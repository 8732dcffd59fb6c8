// Updates during which the host reads nothing back, which a GPU runs as one graph, here on the CPU.
#include "tests/doctest_torch.hpp"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "learner/agents/learners/saved_replica.hpp"
#include "learner/agents/sac/sac.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/small_agent.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

struct Setting {
  std::string name;
  AgentPtr agent;
  replay::TransitionSpec spec;
  double tolerance = 1e-6; // absolute
};

std::vector<Setting> d4pg_settings() {
  D4pgConfig states = small_config();
  states.precision = "float64";
  D4pgConfig pixels = states;
  pixels.encoder_channels = 8;
  pixels.feature_size = 12;
  D4pgConfig clipped = states;
  clipped.gradient_norm = 1e-3;
  clipped.action_gradient_norm = 0.5;
  D4pgConfig copies = states;
  copies.target_period = 3;
  copies.target_update = 1;
  D4pgConfig blocks = states;
  blocks.policy_layers = {12};
  blocks.critic_layers = {16};
  blocks.blocks = {
      .policy_blocks = 1, .critic_blocks = 2, .normalise_observations = true, .weight_decay = 0.01};
  return {{"d4pg, clipped", make_d4pg_agent(clipped), state_spec(7, 2)},
          {"d4pg, hard copies", make_d4pg_agent(copies), state_spec(7, 2)},
          {"d4pg, blocks", make_d4pg_agent(blocks), state_spec(7, 2)},
          {"d4pg, float32", make_d4pg_agent(small_config()), state_spec(7, 2), 1e-3},
          {"d4pg, pixels", make_d4pg_agent(pixels), pixel_spec(40, 3, 2)}};
}

std::vector<Setting> settings() {
  std::vector<Setting> made = d4pg_settings();
  for (const AgentKind& kind : agent_kinds())
    made.push_back(
        {kind.name, small_agent(kind, "precision: \"float64\""), small_transitions(kind)});
  const AgentKind& dqn = *find_agent("dqn");
  made.push_back({"dqn, all switches",
                  small_agent(dqn, "precision: \"float64\" dueling: true noisy: true atoms: 7 "
                                   "value_minimum: -5 value_maximum: 5 target_period: 3"),
                  small_transitions(dqn)});
  const AgentKind& td3 = *find_agent("td3");
  made.push_back({"td3, clipped, with blocks and imitation",
                  small_agent(td3, "precision: \"float64\" gradient_norm: 1e-2 imitation: 2.5 "
                                   "normalise_observations: true"),
                  small_transitions(td3)});
  made.push_back({"sac, spherical",
                  make_sac_agent({.policy_layers = {16, 16},
                                  .critic_layers = {24, 24},
                                  .precision = "float64",
                                  .spherical = true}),
                  small_transitions(*find_agent("sac"), "spherical: true")});
  return made;
}

std::unique_ptr<Replica> built(const Setting& setting, ReplicaContext& context,
                               UpdateCapture capture) {
  at::set_num_threads(1); // tests run in parallel
  auto replica = setting.agent->make_replica(setting.spec);
  dynamic_cast<SavedReplica&>(*replica).set_capture(capture);
  replica->build(context);
  return replica;
}

void check_alike(const TensorMap& one, const TensorMap& other, double tolerance) {
  REQUIRE(one.size() == other.size());
  for (const auto& [name, tensor] : one) {
    CAPTURE(name);
    CHECK(at::allclose(tensor.to(at::kDouble), other.at(name).to(at::kDouble), 1e-4, tolerance));
  }
}

} // namespace

TEST_CASE("A captured update of every agent equals the eager update") {
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
        CHECK(at::allclose(captured->priorities(), usual->priorities(), 1e-4, setting.tolerance));
      check_alike(captured->parameters(), usual->parameters(), setting.tolerance);
      check_alike(captured->optimizer_state(), usual->optimizer_state(), setting.tolerance);
    }
  }
}

TEST_CASE("Captured updates continue from a state saved by eager updates, and vice versa") {
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
      check_alike(to->parameters(), from->parameters(), setting.tolerance);
      check_alike(to->optimizer_state(), from->optimizer_state(), setting.tolerance);
      std::swap(from, to);
    }
  }
}

TEST_CASE("A value that is not finite is named and changes no parameter") {
  for (const Setting& setting : d4pg_settings()) {
    CAPTURE(setting.name);
    ReplicaContext context(nullptr, 3);
    const auto captured = built(setting, context, UpdateCapture::always);
    captured->step_fn(context, random_batch(setting.spec, 6, 10));
    TensorMap batch = random_batch(setting.spec, 6, 11);
    batch["reward"][2] = std::numeric_limits<float>::quiet_NaN();
    CHECK(has(error_of([&] { captured->step_fn(context, batch); }),
              "NaN or infinity in batch tensor 'reward'"));
    TensorMap parameters = copied(captured->parameters());
    for (auto& [name, tensor] : parameters)
      if (name == "critic.output.bias")
        tensor[0] = std::numeric_limits<double>::quiet_NaN();
    captured->load(parameters, copied(captured->optimizer_state()));
    CHECK(has(error_of([&] { captured->step_fn(context, random_batch(setting.spec, 6, 12)); }),
              "critic_loss is NaN or infinite at update 2: parameter 'critic.output.bias' is not "
              "finite"));
    for (const auto& [name, tensor] : captured->parameters()) {
      CAPTURE(name);
      if (!name.starts_with("observation."))
        CHECK(at::equal(at::nan_to_num(tensor), at::nan_to_num(parameters.at(name))));
    }
  }
}

TEST_CASE("CUDA graphs are available only on GPUs") {
  const std::string reason = StepGraph::unavailable_reason(at::kCPU);
  CHECK(reason == "CUDA graphs need a GPU, not cpu");
  CHECK(error_of([] { StepGraph(at::kCPU, [] {}); }) == reason);
  CHECK(!StepGraph::unavailable_reason(at::Device(at::kCUDA, 99)).empty());
}
