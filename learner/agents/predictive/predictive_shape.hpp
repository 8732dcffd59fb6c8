#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/nn/encoder.hpp"
#include "learner/nn/mlp.hpp"

namespace troupe::learner {

/// Features of states or pictures, and of pairs of these and an action, that are trained to predict
/// what comes next: the representation of MR.Q (Fujimoto et al. 2025).
struct PredictiveConfig {
  std::vector<std::int64_t> encoder_layers = {750, 750}; // hidden layers for states; MR.Q: 512
  std::int64_t state_features = 512;
  std::int64_t action_features = 256;
  std::vector<std::int64_t> pair_layers = {750, 750}; // hidden layers for pairs; MR.Q: 512
  std::int64_t pair_features = 512;                   // features of a pair of state and action
  int encoder_channels = 32;                          // for pixels
  int shift_pixels = 4;                               // maximum random shift of pictures
  int horizon = 5;                                    // number of predicted steps
  double reward_weight = 0.1;                         // of the cross entropy of the reward
  double termination_weight = 0;                      // of the termination's error; MR.Q: 0.1
  double contrast_weight = 0.1;                       // of InfoNCE between next features
  double contrast_temperature = 0.1;

  void add_members(Members& members);
  std::vector<OptionProblem> problems(const std::string& agent, const AgentSetting& setting) const;
};

/// The shapes of the networks, for learning and acting.
struct PredictiveShape {
  /// Throws std::invalid_argument naming the observation and `agent` if the observation is
  /// unsupported.
  PredictiveShape(const std::string& agent, const PredictiveConfig& config,
                  const replay::TransitionSpec& transitions);

  bool pixels = false;
  EncoderShape convolutions;           // pixels only
  std::int64_t inputs = 0;             // inputs of `state`
  std::vector<LayerSpec> state_layers; // layers of `state`
  Mlp state;  // observation, or outputs of the convolutions -> features of the state
  Mlp action; // action -> features of the action
  Mlp pair;   // features of the state, then of the action -> features of the pair
  Mlp model;  // features of the pair -> those of the next state, then logits of the reward and,
              // with a termination_weight, whether the episode terminates
  ParameterLayout layout;
  std::int64_t acting_count = 0; // number of leading parameters that the features of a state need

  /// Writes initial parameters to `flat`, which must be dense.
  void initialise(const at::Tensor& flat, at::Generator& generator) const;
};

/// Returns layers of these widths followed by a linear output layer.
std::vector<LayerSpec> activated_layers(const std::vector<std::int64_t>& widths,
                                        Activation activation, std::int64_t outputs);

} // namespace troupe::learner
