// The layers that an agent describes compute the same actions as its policy.
#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>

#include "learner/policy_graph/graph_runner.hpp"
#include "learner/policy_graph/weight_type.hpp"
#include "tests/learner/agents/small_agent.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::learner;

namespace {

/// The observations, the actions, and further keys of the agent's block.
struct Case {
  std::string agent;
  std::string keys;
  replay::TransitionSpec transitions;
};

const env::ArraySpec kState = {"state", env::ElementType::float32, {7}};
const env::ArraySpec kPicture = {"pixels", env::ElementType::uint8, {3, 40, 40}};
const env::ArraySpec kBeside = {"velocity", env::ElementType::float32, {3}};

std::vector<Case> cases() {
  const replay::TransitionSpec states{.frame = kState, .stack = 2, .action_size = 3};
  const replay::TransitionSpec pixels{.frame = kPicture, .stack = 2, .action_size = 3};
  const replay::TransitionSpec both{
      .frame = kPicture, .vectors = {kBeside}, .action_size = 3, .action_choices = {0, 4, 0}};
  const replay::TransitionSpec choice{.frame = kState, .action_size = 1, .action_choices = {5}};
  const replay::TransitionSpec seen_choice{
      .frame = kPicture, .vectors = {kBeside}, .action_size = 1, .action_choices = {5}};
  return {
      {"d4pg", "", states},
      {"d4pg", "layer_norm: false", states},
      {"d4pg", "encoder: \"drq\" encoder_channels: 5 feature_size: 9", pixels},
      {"d4pg", "encoder: \"stride4\" encoder_channels: 5 feature_size: 9", pixels},
      {"drqv2", "", pixels},
      {"mrq", "", states},
      {"mrq", "encoder_channels: 5", pixels},
      {"td3", "", states},
      {"td3", "normalise_observations: true", states},
      {"sac", "", states},
      {"sac", "normalise_observations: true", states},
      {"d4pg", "policy_layers: [16] policy_blocks: 2 normalise_observations: true", states},
      {"td3", "policy_layers: [16] policy_blocks: 1", states},
      {"sac", "policy_layers: [16] policy_blocks: 2 normalise_observations: true", states},
      {"sac",
       "spherical: true policy_layers: [16] policy_blocks: 2 critic_layers: [16] critic_blocks: 1",
       states},
      {"sac",
       "spherical: true policy_layers: [16] policy_blocks: 1 critic_layers: [16] critic_blocks: 1 "
       "normalise_observations: true",
       states},
      {"bc", "", both},
      {"bc", "", states},
      {"ppo", "", states},
      {"ppo", "lstm: 6 encoder: \"nature\"", both},
      {"impala", "", choice},
      {"impala", "lstm: 6", states},
      {"dqn", "", choice},
      {"dqn", "dueling: true noisy: true atoms: 11", seen_choice},
      {"r2d2", "", choice},
      {"r2d2", "encoder: \"nature\"", seen_choice}};
}

/// A policy with random parameters. The first ones are replaced by `moments`.
std::unique_ptr<Policy> random_policy(const Agent& agent, const replay::TransitionSpec& transitions,
                                      const std::vector<float>& moments = {}) {
  auto policy = agent.make_policy(transitions);
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.15F);
  std::vector<float> parameters(static_cast<std::size_t>(policy->parameter_count()));
  for (float& parameter : parameters)
    parameter = normal(random);
  std::copy(moments.begin(), moments.end(), parameters.begin());
  policy->load(parameters);
  return policy;
}

/// An observation as an environment writes it.
std::vector<std::byte> random_observation(const replay::TransitionSpec& transitions,
                                          std::mt19937& random) {
  const std::size_t frames = transitions.observation().bytes();
  std::vector<std::byte> made(transitions.vectors.empty()
                                  ? frames
                                  : (frames + 7) / 8 * 8
                                        + transitions.vector_elements() * sizeof(float));
  std::normal_distribution<float> normal;
  const auto write = [&](std::size_t place) {
    const float number = normal(random);
    std::memcpy(made.data() + place, &number, sizeof number);
  };
  const bool picture = transitions.frame.type == env::ElementType::uint8;
  for (std::size_t i = 0; picture && i < frames; ++i)
    made[i] = static_cast<std::byte>(random());
  for (std::size_t i = picture ? (frames + 7) / 8 * 8 : 0; i < made.size(); i += sizeof(float))
    write(i);
  return made;
}

} // namespace

TEST_CASE("The exported layers of every built-in agent act as its policy, step after step") {
  for (const Case& one : cases()) {
    CAPTURE(one.agent);
    CAPTURE(one.keys);
    const AgentPtr agent = small_agent(*find_agent(one.agent), one.keys);
    const auto transitions = stored_by(*agent, one.transitions);
    const auto policy = random_policy(*agent, transitions);
    const auto graph = policy->graph();
    REQUIRE(graph);
    GraphRunner runner(*graph);
    REQUIRE(graph->state_size() == policy->state_size());
    std::mt19937 random(5);
    std::vector<float> state(static_cast<std::size_t>(policy->state_size()));
    std::vector<float> same_state = state;
    std::vector<float> action(static_cast<std::size_t>(transitions.action_size));
    std::vector<float> same = action;
    for (int step = 0; step < 50; ++step) {
      const auto whole = random_observation(transitions, random);
      const std::size_t frames = transitions.observation().bytes();
      std::vector<float> vectors(transitions.vector_elements());
      std::memcpy(vectors.data(), whole.data() + (whole.size() - vectors.size() * sizeof(float)),
                  vectors.size() * sizeof(float));
      policy->act(whole, 1, action, state);
      runner.act(std::span(whole).first(frames), vectors, same_state, same);
      for (std::size_t i = 0; i < action.size(); ++i)
        CHECK(same[i] == doctest::Approx(action[i]).epsilon(1e-5));
    }
    for (std::size_t i = 0; i < state.size(); ++i)
      CHECK(same_state[i] == doctest::Approx(state[i]).epsilon(1e-5));
  }
}

TEST_CASE("A constant element of an observation is normalised as the policy normalises it") {
  const replay::TransitionSpec states{.frame = kState, .action_size = 3};
  constexpr std::size_t kElements = 7;
  constexpr float kConstant = 300.7F;
  std::vector<float> moments(2 * kElements, 0); // the means, then the inverse deviations
  std::fill(moments.begin() + kElements, moments.end(), 1.F);
  moments[3] = kConstant;
  moments[kElements + 3] = 1e4F; // of a variance of 0
  for (const Case& one : std::vector<Case>{
           {"td3", "", states},
           {"sac", "", states},
           {"sac",
            "spherical: true policy_layers: [16] policy_blocks: 1 critic_layers: [16] "
            "critic_blocks: 1",
            states}}) {
    CAPTURE(one.agent);
    CAPTURE(one.keys);
    const AgentPtr agent =
        small_agent(*find_agent(one.agent), "normalise_observations: true " + one.keys);
    const auto transitions = stored_by(*agent, one.transitions);
    const auto policy = random_policy(*agent, transitions, moments);
    GraphRunner runner(policy->graph().value());
    std::mt19937 random(5);
    std::vector<float> action(3);
    std::vector<float> same(3);
    for (int step = 0; step < 50; ++step) {
      auto whole = random_observation(transitions, random);
      std::memcpy(whole.data() + 3 * sizeof kConstant, &kConstant, sizeof kConstant);
      policy->act(whole, 1, action);
      runner.act(whole, {}, {}, same);
      for (std::size_t i = 0; i < action.size(); ++i)
        CHECK(same[i] == doctest::Approx(action[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("The margin of a choice is relative to the largest value, and the smallest one counts") {
  PolicyGraph graph{.inputs = 5,
                    .actions = {{.kind = GraphAction::Kind::choice, .choices = 3},
                                {.kind = GraphAction::Kind::choice, .choices = 2}}};
  GraphRunner runner(graph);
  const auto margin = [&](std::vector<float> values) {
    std::vector<float> action(2);
    runner.act(std::as_bytes(std::span(values)), {}, {}, action);
    return runner.choice_margin();
  };
  CHECK(margin({-4, 2, 1, 8, 2}) == doctest::Approx(0.25)); // (2 - 1) / 4
  CHECK(margin({-4, 2, 1, 8, 7}) == doctest::Approx(0.125));
  CHECK(margin({0, 0, 0, 8, 7}) == 0);
  graph = {.inputs = 4,
           .actions = {{.kind = GraphAction::Kind::distribution,
                        .choices = 2,
                        .atoms = 2,
                        .minimum = 0,
                        .maximum = 10}}};
  GraphRunner expected(graph);
  const std::vector<float> logits{0, 0, -50, 50}; // the means 5 and 10
  std::vector<float> action(1);
  expected.act(std::as_bytes(std::span(logits)), {}, {}, action);
  CHECK(expected.choice_margin() == doctest::Approx(0.5));
  graph = {.inputs = 1, .actions = {{.count = 1}}};
  CHECK(std::isinf(GraphRunner(graph).choice_margin()));
}

TEST_CASE("Weights of fewer bits are rounded to the nearest value of their type") {
  PolicyGraph graph{.inputs = 2,
                    .layers = {{.inputs = 2,
                                .outputs = 2,
                                .weight = {1.27F, 0.01F, -0.635F, -2.54F},
                                .bias = {0, 0}}},
                    .actions = {{.count = 2}}};
  const auto bytes = with_weights(graph, WeightType::int8).layers[0].weight;
  CHECK(bytes[0] == doctest::Approx(1.27)); // the largest weight of output 0, whose scale is 0.01
  CHECK(bytes[1] == 0);                     // the scale of output 1 is 0.02; a half rounds to even
  CHECK(std::abs(bytes[2] + 0.635F) <= 0.0051F);
  CHECK(bytes[3] == doctest::Approx(-2.54));
  const auto halves = with_weights(graph, WeightType::bfloat16).layers[0].weight;
  for (std::size_t i = 0; i < halves.size(); ++i)
    CHECK(std::abs(halves[i] - graph.layers[0].weight[i])
          <= std::abs(graph.layers[0].weight[i]) / 256);
  CHECK(bfloat16_bits(1.00390625F) == 0x3f80); // half-way between two numbers: rounds to even
  CHECK(weight_type_named("int8") == WeightType::int8);
  CHECK_THROWS_WITH(weight_type_named("int4"),
                    "weights 'int4' are unknown; name float, bfloat16 or int8");
}

TEST_CASE("Layers that do not fit each other are refused by number") {
  PolicyGraph graph{.inputs = 2,
                    .layers = {{.inputs = 3, .outputs = 1, .weight = {1, 2, 3}, .bias = {0}}},
                    .actions = {{.count = 1}}};
  CHECK_THROWS_WITH(GraphRunner{graph}, "layer 0 of the policy takes 3 numbers behind 2");
  graph.inputs = 3;
  graph.layers[0].weight.pop_back();
  CHECK_THROWS_WITH(GraphRunner{graph}, "layer 0 of the policy has 2 weights, not 3");
  graph.layers[0].weight.push_back(1);
  PolicyGraph alone = graph;
  alone.layers.push_back({.kind = GraphLayer::Kind::add, .inputs = 1, .outputs = 1});
  CHECK_THROWS_WITH(GraphRunner{alone}, "layer 1 of the policy adds 0 kept numbers to 1");
  graph.actions[0].count = 2;
  CHECK_THROWS_WITH(GraphRunner{graph},
                    "layer 0 of the policy gives 1 numbers for actions that take 2");
}
