#include "learner/agents/spherical/spherical_policy.hpp"

#include <algorithm>
#include <cmath>

#include <torch/types.h>

#include "learner/acting/action_density.hpp"
#include "learner/agents/parts/mlp_policy.hpp"
#include "learner/agents/parts/observed.hpp"
#include "learner/policy_graph/graph_layers.hpp"

namespace troupe::learner {
namespace {

constexpr double kLeastLogarithm = -10; // of the standard deviation
constexpr double kMostLogarithm = 2;
constexpr double kHalfRange = (kMostLogarithm - kLeastLogarithm) / 2;

/// Adds the network's input: the state, normalised if there are moments, and a constant, scaled to
/// length 1.
void add_inputs(PolicyGraph& graph, const at::Tensor& moments) {
  if (moments.defined())
    add_moments(graph, moments);
  const at::Tensor gain = at::ones({graph.inputs}, at::kFloat);
  const at::Tensor constant = at::full({1}, SphericalNetwork::kConstantInput, at::kFloat);
  add_weightless(graph, GraphLayer::Kind::affine, gain, at::cat({at::zeros_like(gain), constant}));
  add_weightless(graph, GraphLayer::Kind::unit_length);
}

} // namespace

SphericalNetwork SphericalPolicyShape::network(const replay::TransitionSpec& transitions) const {
  return {learner::state_size(transitions, agent), width, blocks, transitions.action_size, 2};
}

at::Tensor squashed_deviations(const at::Tensor& raw) {
  const std::int64_t size = raw.size(1) / 2;
  const at::Tensor squashed = (raw.narrow(1, size, size).tanh() + 1) * kHalfRange + kLeastLogarithm;
  return at::cat({raw.narrow(1, 0, size), squashed}, 1);
}

void squashed_deviations_backward(const at::Tensor& raw, at::Tensor& gradient) {
  const std::int64_t size = raw.size(1) / 2;
  const at::Tensor squashed = raw.narrow(1, size, size).tanh();
  gradient.narrow(1, size, size).mul_((1 - squashed * squashed) * kHalfRange);
}

SphericalPolicy::SphericalPolicy(const SphericalPolicyShape& shape,
                                 const replay::TransitionSpec& transitions)
    : agent_(shape.agent), transitions_(transitions), network_(shape.network(transitions)) {
  const std::size_t moments =
      shape.normalised ? layout_.add("observation", {2 * learner::state_size(transitions, agent_)})
                       : 0;
  network_.declare(layout_, "policy");
  flat_ = at::zeros({layout_.count()}, at::kFloat);
  if (shape.normalised)
    moments_ = layout_.stored_view(flat_, moments);
  parameters_ = network_.bind(layout_, flat_);
}

void SphericalPolicy::load(std::span<const float> parameters) {
  load_parameters(parameters, flat_, agent_);
}

at::Tensor SphericalPolicy::outputs(const Observations& observations,
                                    std::span<const float> actions) {
  at::Tensor state = observed(observations, transitions_, actions).frames.flatten(1);
  if (moments_.defined()) {
    const auto parts = moments_.chunk(2);
    state = (state - parts[0]) * parts[1];
  }
  return network_.forward(parameters_, state, trace_, workspace_);
}

void SphericalPolicy::act(const Observations& observations, std::span<float> actions) {
  at::NoGradGuard no_gradient;
  const at::Tensor means =
      at::tanh(outputs(observations, actions).narrow(1, 0, transitions_.action_size)).contiguous();
  std::copy_n(means.const_data_ptr<float>(), actions.size(), actions.data());
}

std::optional<PolicyGraph> SphericalPolicy::graph() const {
  using Kind = GraphLayer::Kind;
  PolicyGraph graph = graph_of(transitions_);
  add_inputs(graph, moments_);
  const auto add = [&](const at::Tensor& weight, const at::Tensor& scale,
                       GraphLayer::Activation activation = GraphLayer::Activation::none) {
    add_linear(graph, weight * scale, at::zeros_like(scale), activation);
  };
  add(parameters_.embed.whole, parameters_.embed_scale);
  add_weightless(graph, Kind::unit_length);
  for (const SphericalNetwork::Block& block : parameters_.blocks) {
    add_weightless(graph, Kind::keep);
    add(block.expand.whole, block.scale, GraphLayer::Activation::relu);
    add(block.contract.whole, at::ones_like(block.mix));
    add_weightless(graph, Kind::unit_length);
    add_weightless(graph, Kind::add, network_.mix(block));
    add_weightless(graph, Kind::unit_length);
  }
  const SphericalNetwork::Head& means = parameters_.heads.front();
  add(means.weight.whole, means.scale);
  add_linear(graph, means.output.whole, means.bias);
  graph.actions = {{.kind = GraphAction::Kind::tanh, .count = transitions_.action_size}};
  return graph;
}

void SphericalPolicy::explore(const Observations& observations, const Exploration& exploration,
                              std::span<float> actions) {
  at::NoGradGuard no_gradient;
  const at::Tensor gaussian = squashed_deviations(outputs(observations, actions));
  const auto size = static_cast<std::size_t>(transitions_.action_size);
  const float* numbers = gaussian.const_data_ptr<float>();
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const float* row = numbers + i / size * 2 * size;
    const double draw = exploration.random[i / size]->normal();
    actions[i] = static_cast<float>(
        std::tanh(row[i % size] + std::exp(double{row[size + i % size]}) * draw));
  }
}

void SphericalPolicy::log_probability(const Observations& observations, const Exploration&,
                                      std::span<const float> actions, std::span<double> out) {
  at::NoGradGuard no_gradient;
  const at::Tensor gaussian = squashed_deviations(outputs(observations, actions));
  const auto size = static_cast<std::size_t>(transitions_.action_size);
  const float* numbers = gaussian.const_data_ptr<float>();
  std::ranges::fill(out, 0);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const float* row = numbers + i / size * 2 * size;
    out[i / size] +=
        log_squashed_normal(row[i % size], std::exp(double{row[size + i % size]}), actions[i]);
  }
}

} // namespace troupe::learner
