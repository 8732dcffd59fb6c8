#include "learner/agents/parts/actor_critic.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <stdexcept>
#include <utility>

#include <torch/types.h>

#include "learner/agents/parts/choices.hpp"
#include "learner/agents/parts/observation_tensor.hpp"
#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {
namespace {

constexpr double kHeadGain = 0.01; // a policy that prefers nothing at first
const double kLogRootTau = 0.5 * std::log(2 * std::numbers::pi);

TorsoOptions options(const std::string& encoder, const std::vector<std::int64_t>& layers,
                     const std::string& name, bool picture) {
  return {.encoder = encoder, .widths = layers, .name = name, .tanh = !picture};
}

} // namespace

ActorCritic::ActorCritic(const std::string& agent, const replay::TransitionSpec& transitions,
                         const std::string& encoder, const std::vector<std::int64_t>& layers,
                         std::int64_t lstm)
    : choice_(!transitions.action_choices.empty()),
      outputs_(choice_ ? one_choice(transitions, agent) : transitions.action_size),
      torso_(layout_, agent, transitions.observation(),
             options(encoder, layers, "torso", transitions.frame.type == env::ElementType::uint8)) {
  const bool picture = transitions.frame.type == env::ElementType::uint8;
  if (!picture && lstm == 0)
    value_torso_.emplace(layout_, agent, transitions.observation(),
                         options(encoder, layers, "value_torso", false));
  if (lstm > 0)
    lstm_ = Lstm(layout_, "lstm", torso_.features(), lstm);
  const std::int64_t features = lstm > 0 ? lstm : torso_.features();
  head_ = Linear(layout_, "policy", features, outputs_);
  value_ = Linear(layout_, "value", features, 1);
  if (!choice_)
    deviation_ = layout_.add("log_deviation", {outputs_});
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

ActorCritic::Output ActorCritic::forward(const Leaves& leaves, const at::Tensor& observation,
                                         const Memory& memory) const {
  at::Tensor x = torso_.forward(leaves, observation);
  if (is_recurrent())
    x = lstm_.forward(leaves, x.unflatten(0, memory.first.sizes()), memory.state, memory.first)
            .hidden.flatten(0, 1);
  const at::Tensor y = value_torso_ ? value_torso_->forward(leaves, observation) : x;
  return {head_.forward(leaves, x), value_.forward(leaves, y).squeeze(1)};
}

at::Tensor ActorCritic::head(const Leaves& leaves, const at::Tensor& observation,
                             at::Tensor& state) const {
  at::Tensor x = torso_.forward(leaves, observation);
  if (is_recurrent()) {
    const Lstm::Output made = lstm_.forward(leaves, x.unsqueeze(1), state);
    x = made.hidden.squeeze(1);
    state.copy_(made.state);
  }
  return head_.forward(leaves, x);
}

at::Tensor ActorCritic::log_probability(const Leaves& leaves, const at::Tensor& head,
                                        const at::Tensor& action) const {
  if (choice_)
    return at::log_softmax(head, 1).gather(1, action.to(at::kLong)).squeeze(1);
  const at::Tensor& deviation = leaves[deviation_];
  return -(((action - head) / deviation.exp()).square() / 2 + deviation + kLogRootTau).sum(1);
}

at::Tensor ActorCritic::entropy(const Leaves& leaves, const at::Tensor& head) const {
  if (!choice_)
    return (leaves[deviation_] + 0.5 + kLogRootTau).sum().expand({head.size(0)});
  const at::Tensor logarithms = at::log_softmax(head, 1);
  return -(logarithms.exp() * logarithms).sum(1);
}

std::vector<env::ArraySpec> rollout_extras(std::int64_t lstm) {
  std::vector<env::ArraySpec> extras{{kLogProbability, env::ElementType::float32, {}}};
  if (lstm > 0)
    extras.push_back({kMemory, env::ElementType::float32, {2 * lstm}});
  return extras;
}

ActorCriticPolicy::ActorCriticPolicy(std::string agent, ActorCritic network,
                                     const replay::TransitionSpec& transitions)
    : agent_(std::move(agent)),
      network_(std::move(network)),
      transitions_(transitions),
      parameters_(at::zeros({network_.layout().count()}, at::kFloat)),
      leaves_(leaves_of(network_.layout(), parameters_)) {}

void ActorCriticPolicy::load(std::span<const float> parameters) {
  load_parameters(parameters, parameters_, agent_);
}

/// [batch, outputs] on the CPU: logarithms of the choices' probabilities, or means.
at::Tensor ActorCriticPolicy::head_of(const Observations& observations,
                                      std::span<const float> actions) {
  at::NoGradGuard no_gradient;
  at::Tensor state = acting_state(observations, state_size());
  const at::Tensor out =
      network_.head(leaves_, observation_tensor(observations, transitions_, actions), state);
  if (!all_finite(out))
    for (std::int64_t row = 0; row < out.size(0); ++row)
      if (!all_finite(out[row]))
        throw std::runtime_error("NaN or infinity in the policy's action of row "
                                 + std::to_string(row));
  return network_.is_choice() ? at::log_softmax(out, 1) : out;
}

void ActorCriticPolicy::act(const Observations& observations, std::span<float> actions) {
  const at::Tensor head = head_of(observations, actions);
  const at::Tensor best =
      network_.is_choice() ? head.argmax(1).to(at::kFloat) : head.clamp(-1, 1).contiguous();
  std::copy_n(best.const_data_ptr<float>(), actions.size(), actions.data());
}

void ActorCriticPolicy::explore(const Observations& observations, const Exploration& exploration,
                                std::span<float> actions) {
  store_state(observations, exploration, 1);
  const at::Tensor head = head_of(observations, actions).contiguous();
  const auto batch = static_cast<std::size_t>(observations.batch);
  const auto outputs = static_cast<std::size_t>(network_.outputs());
  const auto deviation =
      network_.is_choice() ? nullptr : network_.deviation(leaves_).const_data_ptr<float>();
  for (std::size_t i = 0; i < batch; ++i) {
    const float* row = head.const_data_ptr<float>() + i * outputs;
    ActingRandom& random = *exploration.random[i];
    double logarithm = 0;
    if (deviation == nullptr) {
      double left = random.uniform();
      std::size_t choice = 0;
      while (choice + 1 < outputs && (left -= std::exp(static_cast<double>(row[choice]))) >= 0)
        ++choice;
      actions[i] = static_cast<float>(choice);
      logarithm = row[choice];
    }
    for (std::size_t k = 0; deviation != nullptr && k < outputs; ++k) {
      const double drawn = random.normal();
      actions[i * outputs + k] =
          static_cast<float>(row[k] + std::exp(static_cast<double>(deviation[k])) * drawn);
      logarithm -= drawn * drawn / 2 + static_cast<double>(deviation[k]) + kLogRootTau;
    }
    if (!exploration.extras.empty()) {
      const auto stored = static_cast<float>(logarithm);
      std::memcpy(exploration.extras[i], &stored, sizeof stored);
    }
  }
}

} // namespace troupe::learner
