#include "learner/agents/parts/actor_critic.hpp"

#include <cstring>
#include <utility>

#include <torch/types.h>

#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/observed.hpp"
#include "learner/policy_graph/graph_layers.hpp"

namespace troupe::learner {
namespace {

constexpr double kHeadGain = 0.01; // initially the policy has almost no preference

TorsoOptions options(const std::string& encoder, const std::vector<std::int64_t>& layers,
                     const std::string& name, bool picture) {
  return {.encoder = encoder, .widths = layers, .name = name, .tanh = !picture};
}

} // namespace

ActorCritic::ActorCritic(const std::string& agent, const replay::TransitionSpec& transitions,
                         const std::string& encoder, const std::vector<std::int64_t>& layers,
                         std::int64_t lstm)
    : actions_(transitions),
      torso_(layout_, agent, transitions,
             options(encoder, layers, "torso", transitions.frame.type == env::ElementType::uint8)) {
  const bool picture = transitions.frame.type == env::ElementType::uint8;
  if (!picture && lstm == 0)
    value_torso_.emplace(layout_, agent, transitions,
                         options(encoder, layers, "value_torso", false));
  if (lstm > 0)
    lstm_ = Lstm(layout_, "lstm", torso_.features(), lstm);
  const std::int64_t features = lstm > 0 ? lstm : torso_.features();
  head_ = Linear(layout_, "policy", features, actions_.outputs());
  value_ = Linear(layout_, "value", features, 1);
  if (actions_.continuous() > 0)
    deviation_ = layout_.add("log_deviation", {actions_.continuous()});
}

at::Tensor ActorCritic::initial(at::Generator& generator) const {
  at::NoGradGuard no_gradient;
  const at::Tensor flat = at::zeros({layout_.count()}, at::kFloat);
  torso_.initialise_orthogonal(layout_, flat, generator);
  if (value_torso_)
    value_torso_->initialise_orthogonal(layout_, flat, generator);
  if (is_recurrent())
    lstm_.initialise(layout_, flat, generator);
  head_.initialise_orthogonal(layout_, flat, generator, kHeadGain);
  value_.initialise_orthogonal(layout_, flat, generator, 1);
  return flat;
}

ActorCritic::Output ActorCritic::forward(const Leaves& leaves, const Observed& observation,
                                         const Memory& memory) const {
  at::Tensor x = torso_.forward(leaves, observation);
  if (is_recurrent())
    x = lstm_.forward(leaves, x.unflatten(0, memory.first.sizes()), memory.state, memory.first)
            .hidden.flatten(0, 1);
  const at::Tensor y = value_torso_ ? value_torso_->forward(leaves, observation) : x;
  return {head_.forward(leaves, x), value_.forward(leaves, y).squeeze(1)};
}

at::Tensor ActorCritic::head(const Leaves& leaves, const Observed& observation,
                             at::Tensor& state) const {
  at::Tensor x = torso_.forward(leaves, observation);
  if (is_recurrent()) {
    const Lstm::Output made = lstm_.forward(leaves, x.unsqueeze(1), state);
    x = made.hidden.squeeze(1);
    state.copy_(made.state);
  }
  return head_.forward(leaves, x);
}

PolicyGraph ActorCritic::describe(const Leaves& leaves,
                                  const replay::TransitionSpec& transitions) const {
  PolicyGraph graph = graph_of(transitions);
  torso_.describe(leaves, transitions, graph);
  if (is_recurrent())
    lstm_.describe(leaves, graph);
  add_linear(graph, head_.weight(leaves), head_.bias(leaves));
  graph.actions = actions_.describe();
  return graph;
}

at::Tensor ActorCritic::log_probability(const Leaves& leaves, const at::Tensor& head,
                                        const at::Tensor& action) const {
  return actions_.log_probability(head, deviations(leaves), action);
}

at::Tensor ActorCritic::entropy(const Leaves& leaves, const at::Tensor& head) const {
  return actions_.entropy(head, deviations(leaves));
}

std::vector<env::ArraySpec> rollout_extras(std::int64_t lstm) {
  std::vector<env::ArraySpec> extras{{kLogProbability, env::ElementType::float32, {}}};
  if (lstm > 0)
    extras.push_back({kMemory, env::ElementType::float32, {2 * lstm}});
  return extras;
}

/// Computes the head, [batch, outputs] on the CPU.
at::Tensor ActorCriticPolicy::head_of(const Observations& observations,
                                      std::span<const float> actions) {
  at::NoGradGuard no_gradient;
  at::Tensor state = acting_state(observations, state_size());
  const at::Tensor out = network().head(leaves(), seen(observations, actions), state);
  require_finite_rows(out);
  return out.contiguous();
}

void ActorCriticPolicy::act(const Observations& observations, std::span<float> actions) {
  const at::Tensor head = head_of(observations, actions);
  const ActionHead& kinds = network().actions();
  for (std::int64_t i = 0; i < observations.batch; ++i)
    kinds.best(head.const_data_ptr<float>() + i * kinds.outputs(), &actions[i * kinds.size()]);
}

void ActorCriticPolicy::explore(const Observations& observations, const Exploration& exploration,
                                std::span<float> actions) {
  store_state(observations, exploration, 1);
  const at::Tensor head = head_of(observations, actions);
  const ActionHead& kinds = network().actions();
  const at::Tensor deviations = network().deviations(leaves());
  const float* deviation = deviations.defined() ? deviations.const_data_ptr<float>() : nullptr;
  for (std::int64_t i = 0; i < observations.batch; ++i) {
    const double logarithm =
        kinds.sample(head.const_data_ptr<float>() + i * kinds.outputs(), deviation,
                     *exploration.random[i], &actions[i * kinds.size()]);
    if (!exploration.extras.empty()) {
      const auto stored = static_cast<float>(logarithm);
      std::memcpy(exploration.extras[i], &stored, sizeof stored);
    }
  }
}

void ActorCriticPolicy::log_probability(const Observations& observations, const Exploration&,
                                        std::span<const float> actions, std::span<double> out) {
  const at::Tensor head = head_of(observations, actions);
  const ActionHead& kinds = network().actions();
  const at::Tensor deviations = network().deviations(leaves());
  const float* deviation = deviations.defined() ? deviations.const_data_ptr<float>() : nullptr;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    out[i] = kinds.log_played(head.const_data_ptr<float>() + row * kinds.outputs(), deviation,
                              &actions[i * static_cast<std::size_t>(kinds.size())]);
  }
}

} // namespace troupe::learner
