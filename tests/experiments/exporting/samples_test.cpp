// The samples that exported policies are compared with.
#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "experiments/exporting/samples.hpp"
#include "learner/policy_graph/graph_runner.hpp"

using namespace troupe;
using namespace troupe::experiments;

namespace {

const env::EnvironmentConfig kCartPole{.task = "CartPole-v1"};

/// Chooses by the cart's position. Near the middle the choices are almost tied. With `remembers`,
/// the last choice matters, too.
learner::PolicyGraph cart_pole_graph(float weight, bool remembers) {
  using Kind = learner::GraphLayer::Kind;
  learner::PolicyGraph graph{
      .inputs = 4, .actions = {{.kind = learner::GraphAction::Kind::choice, .choices = 2}}};
  if (remembers)
    graph.layers.push_back({.kind = Kind::last_choice, .inputs = 4, .outputs = 7});
  const std::int64_t inputs = remembers ? 7 : 4;
  std::vector<float> weights(static_cast<std::size_t>(inputs) * 2, 0); // [inputs, choices]
  weights[0] = weight;
  if (remembers)
    weights[5 * 2] = 5e-4F; // the last choice was 0
  graph.layers.push_back({.inputs = inputs, .outputs = 2, .weight = weights, .bias = {1, 1}});
  return graph;
}

/// Acts as its graph, but decides choices that are almost tied the other way.
class ContraryPolicy : public learner::Policy {
public:
  explicit ContraryPolicy(const learner::PolicyGraph& graph) : runner_(graph) {}

  std::int64_t parameter_count() const override { return 0; }
  std::int64_t state_size() const override { return runner_.graph().state_size(); }
  void load(std::span<const float>) override {}
  using Policy::act;
  void act(const learner::Observations& observations, std::span<float> actions) override {
    runner_.act({observations.frames[0], observations.frame_bytes}, {}, observations.state,
                actions);
    if (runner_.choice_margin() > 5e-5)
      return;
    actions[0] = 1 - actions[0];
    if (!observations.state.empty())
      observations.state.back() = actions[0] + 1;
  }

private:
  learner::GraphRunner runner_;
};

PolicySamples cart_pole_samples(const learner::PolicyGraph& graph, learner::WeightType weights,
                                std::int64_t count) {
  ContraryPolicy policy(graph);
  PolicyContract contract = contract_of(kCartPole);
  contract.state_size = graph.state_size();
  return record_samples(kCartPole, contract, policy, graph, weights, 3, count);
}

} // namespace

TEST_CASE("Observations where a choice is almost tied are left out of the samples") {
  for (const bool remembers : {false, true}) {
    CAPTURE(remembers);
    const auto graph = cart_pole_graph(0.01F, remembers);
    const auto samples = cart_pole_samples(graph, learner::WeightType::float32, 200);
    CHECK(samples.largest_difference == 0);
    REQUIRE(samples.actions.size() == 200);
    // A program that has only the samples chooses the same actions.
    learner::GraphRunner runner(graph);
    std::vector<float> state(static_cast<std::size_t>(graph.state_size()));
    std::vector<float> action(1);
    for (std::size_t row = 0; row < 200; ++row) {
      if (samples.first[row] != 0)
        std::fill(state.begin(), state.end(), 0.F);
      const std::size_t bytes = 4 * sizeof(float);
      runner.act(std::span(samples.frames).subspan(row * bytes, bytes), {}, state, action);
      CHECK(action[0] == samples.actions[row]);
      CHECK(runner.choice_margin() >= 1e-4);
    }
  }
}

TEST_CASE("A policy whose choices are always tied has as many samples as others") {
  const auto graph = cart_pole_graph(0, false);
  const auto samples = cart_pole_samples(graph, learner::WeightType::float32, 20);
  CHECK(samples.actions.size() == 20);
  CHECK(samples.largest_difference == 0);
}

TEST_CASE("Samples have the actions of rounded weights beside those of the policy") {
  const auto graph = cart_pole_graph(0.01F, false);
  CHECK(cart_pole_samples(graph, learner::WeightType::float32, 20).rounded.empty());
  const auto samples = cart_pole_samples(graph, learner::WeightType::int8, 20);
  CHECK(samples.rounded == samples.actions); // each weight is the largest one of its output
}
