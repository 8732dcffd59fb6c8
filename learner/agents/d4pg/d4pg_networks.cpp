#include "learner/agents/d4pg/d4pg_networks.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include "learner/agents/parts/choices.hpp"
#include "learner/nn/residual_layers.hpp"

namespace troupe::learner {
namespace {

void require(bool holds, const std::string& key, double value, const std::string& rule) {
  if (!holds)
    throw std::invalid_argument("d4pg." + key + " is " + std::to_string(value) + "; it must be "
                                + rule);
}

void check(const D4pgConfig& c) {
  for (const std::int64_t width : c.policy_layers)
    require(width >= 1, "policy_layers", static_cast<double>(width), "at least 1");
  for (const std::int64_t width : c.critic_layers)
    require(width >= 1, "critic_layers", static_cast<double>(width), "at least 1");
  require(c.atoms >= 2, "atoms", c.atoms, "at least 2");
  require(c.value_maximum > c.value_minimum, "value_maximum", c.value_maximum,
          "above value_minimum, " + std::to_string(c.value_minimum));
  require(c.policy_learning_rate > 0, "policy_learning_rate", c.policy_learning_rate, "above 0");
  require(c.critic_learning_rate > 0, "critic_learning_rate", c.critic_learning_rate, "above 0");
  require(c.target_update > 0 && c.target_update <= 1, "target_update", c.target_update,
          "above 0 and at most 1");
  require(c.target_period >= 1, "target_period", c.target_period, "at least 1");
  require(c.gradient_norm >= 0, "gradient_norm", c.gradient_norm, "at least 0 (0: off)");
  require(c.action_gradient_norm >= 0, "action_gradient_norm", c.action_gradient_norm,
          "at least 0 (0: off)");
  require(c.saturation_penalty >= 0, "saturation_penalty", c.saturation_penalty, "at least 0");
  require(c.reward_scale > 0, "reward_scale", c.reward_scale, "above 0");
  require(c.encoder_channels >= 1, "encoder_channels", static_cast<double>(c.encoder_channels),
          "at least 1");
  require(c.feature_size >= 1, "feature_size", static_cast<double>(c.feature_size), "at least 1");
  require(c.shift_pixels >= 0, "shift_pixels", c.shift_pixels, "at least 0 (0: off)");
  require(c.blocks.policy_blocks == 0 || c.policy_layers.size() == 1, "policy_blocks",
          c.blocks.policy_blocks, "0 unless policy_layers has one width");
  require(c.blocks.critic_blocks == 0 || c.critic_layers.size() == 1, "critic_blocks",
          c.blocks.critic_blocks, "0 unless critic_layers has one width");
  require(c.batch_size >= 1, "batch_size", static_cast<double>(c.batch_size), "at least 1");
  if (c.precision != "auto" && c.precision != "float32" && c.precision != "bfloat16"
      && c.precision != "float64")
    throw std::invalid_argument("d4pg.precision is '" + c.precision
                                + "'; it must be 'auto', 'float32', 'bfloat16' or 'float64'");
}

std::vector<LayerSpec> layers(const D4pgConfig& config, bool pixels,
                              const std::vector<std::int64_t>& widths, std::int64_t outputs,
                              int blocks) {
  std::vector<LayerSpec> specs;
  if (pixels)
    specs.push_back({"trunk", config.feature_size, Activation::norm_tanh});
  if (blocks > 0) {
    for (LayerSpec& spec : relu_layers(widths, outputs, blocks))
      specs.push_back(std::move(spec));
    return specs;
  }
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const bool first = i == 0 && !pixels && config.layer_norm;
    const Activation activation =
        first ? Activation::norm_tanh : (pixels ? Activation::relu : Activation::elu);
    specs.push_back({"layer" + std::to_string(i), widths[i], activation});
  }
  specs.push_back({"output", outputs, Activation::none});
  return specs;
}

} // namespace

D4pgNetworks::D4pgNetworks(const D4pgConfig& config, const D4pgSpec& spec) {
  check(config);
  const env::ArraySpec observation = spec.transition.observation();
  pixels = observation.type == env::ElementType::uint8;
  action_size = spec.transition.action_size;
  require_continuous(spec.transition, "d4pg");
  require_one_array(spec.transition, "d4pg");
  if (action_size < 1)
    throw std::invalid_argument("the action has " + std::to_string(action_size)
                                + " dimensions; D4PG needs at least 1");
  if (pixels ? observation.shape.size() != 3
             : observation.shape.size() != 1 || observation.type != env::ElementType::float32)
    throw std::invalid_argument("observation '" + observation.name + "' is "
                                + env::element_name(observation.type) + " with "
                                + std::to_string(observation.shape.size())
                                + " dimensions; D4PG takes uint8 [channels, height, width] or "
                                  "float32 [n]");
  observation_size = static_cast<std::int64_t>(observation.elements());
  std::int64_t inputs = observation_size;
  if (pixels) {
    encoder = EncoderShape(config.encoder,
                           {observation.shape[0], observation.shape[1], observation.shape[2]},
                           config.encoder_channels, "d4pg.encoder");
    encoder.declare(critic_layout, "encoder");
    encoder_count = critic_layout.count();
    inputs = encoder.features();
  }
  support = {config.atoms, config.value_minimum, config.value_maximum};
  policy = Mlp(inputs, layers(config, pixels, config.policy_layers, action_size,
                              config.blocks.policy_blocks));
  critic =
      Mlp(inputs,
          layers(config, pixels, config.critic_layers, config.atoms, config.blocks.critic_blocks),
          pixels ? 1 : 0, action_size);
  critic.declare(critic_layout, "critic");
  policy.declare(policy_layout, "policy");
}

void D4pgNetworks::initialise(at::Tensor critic_flat, at::Tensor policy_flat,
                              std::uint64_t seed) const {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  if (pixels) {
    const EncoderShape::Tensors tensors = encoder.bind(critic_layout, critic_flat);
    for (std::size_t i = 0; i < tensors.weight.size(); ++i) {
      orthogonal(tensors.weight[i], std::sqrt(2.0), generator); // ReLU's gain
      at::Tensor(tensors.bias[i]).zero_();
    }
  }
  const auto weights = pixels ? Mlp::Weights::orthogonal : Mlp::Weights::uniform;
  critic.initialise(critic_layout, critic_flat, weights, generator);
  policy.initialise(policy_layout, policy_flat, weights, generator);
  LayerTensors last = policy.bind(policy_layout, policy_flat).back();
  last.weight.mul_(0.1); // actions begin near 0, where tanh is not saturated
  last.bias.mul_(0.1);
}

} // namespace troupe::learner
