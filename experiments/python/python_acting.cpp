#include "experiments/python/python_acting.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <torch/types.h>

#include "learner/agents/parts/acting_network.hpp"
#include "learner/agents/parts/deterministic_policy.hpp"
#include "learner/agents/parts/mlp_policy.hpp"
#include "learner/agents/parts/observed.hpp"

namespace troupe::python {
namespace {

using namespace learner;

/// The transitions with the choice replaced by one output of the acting network per alternative.
/// Throws std::invalid_argument if the environment's actions do not suit the agent.
replay::TransitionSpec as_outputs(const std::string& agent, const Settings& settings,
                                  replay::TransitionSpec transitions) {
  if (!settings.discrete)
    return transitions; // the network refuses choices later
  if (transitions.action_size != 1 || transitions.choices_of(0) == 0)
    throw std::invalid_argument("the action is not one choice, which " + agent
                                + " takes (discrete=True); leave that out for continuous actions");
  transitions.action_choices = {};
  return transitions;
}

class PythonPolicy : public Policy {
public:
  PythonPolicy(std::string name, const Settings& settings,
               const replay::TransitionSpec& transitions)
      : name_(std::move(name)),
        acting_(name_, settings, transitions),
        network_(acting_.spec, acting_.layers, acting_.pixels ? &acting_.encoder : nullptr),
        parameters_(at::zeros({acting_.layout.count()}, at::kFloat)),
        choices_(transitions.choices_of(0)),
        noise_(settings.noise),
        epsilon_({.probability = settings.epsilon}) {
    pack();
  }

  std::int64_t parameter_count() const override { return acting_.layout.count(); }
  void load(std::span<const float> parameters) override {
    load_parameters(parameters, parameters_, name_);
    pack();
  }
  using Policy::act;
  void act(const Observations& observations, std::span<float> actions) override {
    const float* raw = network_.outputs(observations, actions);
    for (std::size_t i = 0; i < actions.size(); ++i)
      if (choices_ == 0) {
        actions[i] = std::tanh(raw[i]);
      } else {
        const float* row = raw + i * static_cast<std::size_t>(choices_);
        actions[i] = static_cast<float>(std::max_element(row, row + choices_) - row);
      }
  }
  void explore(const Observations& observations, const Exploration& exploration,
               std::span<float> actions) override {
    Policy::explore(observations, exploration, actions);
    if (choices_ == 0)
      add_noise(noise_, exploration, actions);
    else
      epsilon_.apply(exploration, choices_, actions);
  }

private:
  void pack() {
    network_.load(acting_.layers.bind(acting_.layout, parameters_),
                  acting_.pixels ? acting_.encoder.bind(acting_.layout, parameters_)
                                 : EncoderShape::Tensors());
  }

  std::string name_;
  Acting acting_;
  ActingNetwork network_;
  at::Tensor parameters_;
  std::int64_t choices_; // 0: continuous
  Schedule noise_;
  EpsilonGreedy epsilon_;
};

} // namespace

Acting::Acting(const std::string& name, const Settings& settings,
               replay::TransitionSpec transitions) {
  const std::int64_t choices = transitions.choices_of(0);
  outputs = std::max<std::int64_t>(choices, 1) * std::int64_t{transitions.action_size};
  spec = as_outputs(name, settings, std::move(transitions));
  pixels = !settings.encoder.empty();
  if (pixels) {
    encoder = EncoderShape(settings.encoder, picture_shape(spec, name), settings.encoder_channels,
                           name + "'s encoder");
    encoder.declare(layout, "encoder");
    inputs = encoder.features();
  } else {
    inputs = state_size(spec, name);
  }
  layers = Mlp(inputs, relu_layers(settings.layers, outputs));
  layers.declare(layout, "policy");
}

std::unique_ptr<Policy> make_python_policy(const std::string& name, const Settings& settings,
                                           const replay::TransitionSpec& transitions) {
  return std::make_unique<PythonPolicy>(name, settings, transitions);
}

} // namespace troupe::python
