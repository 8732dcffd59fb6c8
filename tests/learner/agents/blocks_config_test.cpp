#include "tests/doctest_torch.hpp"

#include "learner/agents/blocks_config.hpp"

#include "learner/agents/parts/deterministic_policy.hpp"
#include "learner/agents/sac/sac.hpp"
#include "learner/agents/td3/td3.hpp"
#include "learner/nn/mlp.hpp"
#include "learner/policy_graph/policy_graph.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

const BlocksConfig kBlocks{
    .policy_blocks = 1, .critic_blocks = 2, .normalise_observations = true, .weight_decay = 0.01};

struct Named {
  std::string name;
  AgentPtr agent;
};

std::vector<Named> agents_with_blocks(const std::string& precision = "float32") {
  D4pgConfig d4pg = small_config();
  d4pg.policy_layers = {12};
  d4pg.critic_layers = {16};
  d4pg.precision = precision;
  d4pg.blocks = kBlocks;
  const Td3Config td3{.policy_layers = {12},
                      .critic_layers = {16},
                      .target_noise = 0,
                      .precision = precision,
                      .blocks = kBlocks};
  const SacConfig sac{
      .policy_layers = {12}, .critic_layers = {16}, .precision = precision, .blocks = kBlocks};
  return {
      {"d4pg", make_d4pg_agent(d4pg)}, {"td3", make_td3_agent(td3)}, {"sac", make_sac_agent(sac)}};
}

const replay::TransitionSpec kSpec = state_spec(5, 2);

TensorMap batch_of(std::uint64_t seed) {
  TensorMap batch = random_batch(kSpec, 16, seed);
  for (const char* name : {"observation", "next_observation"})
    batch[name] = batch[name] * 50 + 200; // plain layers would see 200 everywhere
  return batch;
}

std::unique_ptr<Replica> fresh(const Agent& agent, ReplicaContext& context) {
  at::set_num_threads(1); // tests run in parallel
  auto replica = agent.make_replica(kSpec);
  replica->build(context);
  return replica;
}

} // namespace

TEST_CASE("Agents with residual blocks continue bit for bit after a restart, with their moments") {
  for (const auto& [name, agent] : agents_with_blocks()) {
    CAPTURE(name);
    const auto learn = [&, &made = agent](int restart_at) {
      ReplicaContext context(nullptr, 4);
      auto replica = fresh(*made, context);
      for (int i = 0; i < 12; ++i) {
        if (i == restart_at) {
          const TensorMap parameters = copied(replica->parameters());
          const TensorMap state = copied(replica->optimizer_state());
          ReplicaContext other(nullptr, 99);
          replica = fresh(*made, other);
          replica->load(parameters, state);
        }
        replica->step_fn(context, batch_of(static_cast<std::uint64_t>(i)));
      }
      return copied(replica->parameters());
    };
    const TensorMap whole = learn(-1);
    CHECK(whole.at("observation.count").item<double>() == 12 * 16);
    CHECK(whole.at("observation.mean").sub(200).abs().max().item<double>() < 30);
    CHECK(equal(whole, learn(-1)));
    CHECK(equal(whole, learn(7)));
  }
}

TEST_CASE("The acting policy computes the learner's network on normalised observations") {
  Mlp network(5, residual_layers(12, 2, 2));
  ParameterLayout layout;
  network.declare(layout, "policy");
  const at::Tensor flat = uniform({layout.count()}, 1);
  const at::Tensor moments = uniform({10}, 2, 0.5, 2);
  const at::Tensor observation = uniform({7, 5}, 3);
  const auto act = [&](bool normalised, const at::Tensor& parameters) {
    DeterministicPolicy policy("td3", kSpec, network, nullptr, {}, normalised);
    policy.load({parameters.const_data_ptr<float>(), static_cast<std::size_t>(parameters.numel())});
    at::Tensor actions = at::empty({7, 2});
    policy.act(bytes_of(observation), 7, {actions.mutable_data_ptr<float>(), 14});
    return actions;
  };
  const auto expected = [&](const at::Tensor& x) {
    Tape tape;
    Workspace workspace;
    return at::tanh(network.forward(network.bind(layout, flat), x, {}, tape, workspace));
  };
  CHECK((act(false, flat) - expected(observation)).abs().max().item<double>() < 1e-5);
  const at::Tensor in_units = (observation - moments.narrow(0, 0, 5)) * moments.narrow(0, 5, 5);
  CHECK((act(true, at::cat({moments, flat})) - expected(in_units)).abs().max().item<double>()
        < 1e-5);
  for (const auto& [name, agent] : agents_with_blocks()) {
    CAPTURE(name);
    ReplicaContext context(nullptr, 4);
    const auto replica = fresh(*agent, context);
    replica->step_fn(context, batch_of(1));
    const at::Tensor published = replica->policy_parameters();
    const auto policy = agent->make_policy(kSpec);
    REQUIRE(policy->parameter_count() == published.numel());
    policy->load({published.const_data_ptr<float>(), static_cast<std::size_t>(published.numel())});
    std::vector<float> actions(14);
    policy->act(bytes_of(observation), 7, actions);
  }
}

TEST_CASE("Blocks of several widths and normalised pixels are refused by key") {
  const AgentSetting pixels{.picture = AgentSetting::Picture{.height = 40, .width = 40}};
  const auto one = kBlocks.problems("td3", {256, 256}, {16}, {});
  REQUIRE(one.size() == 1);
  CHECK(one[0].key == "policy_layers");
  CHECK(one[0].text.find("td3.policy_blocks 1 it must have one") != std::string::npos);
  CHECK(kBlocks.problems("td3", {12}, {16, 16}, {}).at(0).key == "critic_layers");
  CHECK(kBlocks.problems("td3", {12}, {16}, pixels).at(0).key == "normalise_observations");
  CHECK(kBlocks.problems("td3", {12}, {16}, {}).empty());
  CHECK(BlocksConfig{}.problems("td3", {256, 256}, {256, 256}, pixels).empty());
  CHECK_THROWS_WITH_AS(relu_layers({8, 8}, 2, 1), doctest::Contains("2 widths"),
                       std::invalid_argument);
  D4pgConfig config;
  config.blocks = {.normalise_observations = true};
  CHECK_THROWS_WITH_AS(make_d4pg_agent(config)->make_replica(pixel_spec(40, 1, 2)),
                       doctest::Contains("d4pg.normalise_observations"), std::invalid_argument);
}
