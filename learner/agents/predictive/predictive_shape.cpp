#include "learner/agents/predictive/predictive_shape.hpp"

#include <cmath>

#include <torch/types.h>

#include "learner/agents/parts/deterministic_policy.hpp"
#include "learner/agents/parts/mlp_policy.hpp"
#include "learner/nn/two_hot.hpp"

namespace troupe::learner {

void PredictiveConfig::add_members(Members& members) {
  members.insert(members.end(), {{"encoder_layers", &encoder_layers},
                                 {"state_features", &state_features},
                                 {"action_features", &action_features},
                                 {"pair_layers", &pair_layers},
                                 {"pair_features", &pair_features},
                                 {"encoder_channels", &encoder_channels},
                                 {"shift_pixels", &shift_pixels},
                                 {"horizon", &horizon},
                                 {"reward_weight", &reward_weight},
                                 {"termination_weight", &termination_weight},
                                 {"contrast_weight", &contrast_weight},
                                 {"contrast_temperature", &contrast_temperature}});
}

std::vector<OptionProblem> PredictiveConfig::problems(const std::string& agent,
                                                      const AgentSetting& setting) const {
  return encoder_problems(agent, "elu", shift_pixels, setting);
}

std::vector<LayerSpec> activated_layers(const std::vector<std::int64_t>& widths,
                                        Activation activation, std::int64_t outputs) {
  std::vector<LayerSpec> made;
  for (std::size_t i = 0; i < widths.size(); ++i)
    made.push_back({.name = "layer" + std::to_string(i),
                    .outputs = widths[i],
                    .activation = activation,
                    .fixed_norm = true});
  made.push_back({"output", outputs, Activation::none});
  return made;
}

PredictiveShape::PredictiveShape(const std::string& agent, const PredictiveConfig& config,
                                 const replay::TransitionSpec& transitions) {
  pixels = transitions.frame.type == env::ElementType::uint8;
  if (pixels) {
    convolutions = EncoderShape("elu", picture_shape(transitions, agent), config.encoder_channels);
    convolutions.declare(layout, "convolutions");
    inputs = convolutions.features();
  } else {
    inputs = state_size(transitions, agent);
  }
  state_layers = activated_layers(pixels ? std::vector<std::int64_t>{} : config.encoder_layers,
                                  Activation::norm_elu, config.state_features);
  state_layers.back().activation = Activation::norm_elu;
  state_layers.back().fixed_norm = true;
  state = Mlp(inputs, state_layers);
  action = Mlp(transitions.action_size, {{"output", config.action_features, Activation::elu}});
  pair = Mlp(config.state_features + config.action_features,
             activated_layers(config.pair_layers, Activation::norm_elu, config.pair_features));
  model =
      Mlp(config.pair_features,
          {{"output", config.state_features + kRewardBins + (config.termination_weight > 0 ? 1 : 0),
            Activation::none}});
  state.declare(layout, "state");
  acting_count = layout.count();
  action.declare(layout, "action");
  pair.declare(layout, "pair");
  model.declare(layout, "model");
}

void PredictiveShape::initialise(const at::Tensor& flat, at::Generator& generator) const {
  if (pixels) {
    const EncoderShape::Tensors tensors = convolutions.bind(layout, flat);
    for (std::size_t i = 0; i < tensors.weight.size(); ++i) {
      const Convolution& c = convolutions.layers()[i];
      const auto sizes = static_cast<double>(c.patch() + c.out.channels * c.kernel * c.kernel);
      at::Tensor(tensors.weight[i])
          .uniform_(-std::sqrt(12 / sizes), std::sqrt(12 / sizes), generator);
    }
  }
  for (const Mlp* one : {&state, &action, &pair, &model})
    one->initialise(layout, flat, Mlp::Weights::xavier, generator);
}

} // namespace troupe::learner
