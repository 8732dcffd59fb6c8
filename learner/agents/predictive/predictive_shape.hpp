#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"
#include "learner/nn/encoder.hpp"
#include "learner/nn/mlp.hpp"

namespace troupe::learner {

/// Features of states or pictures, and of these with an action, that learn to predict what comes
/// next: the representation of MR.Q (Fujimoto et al. 2025).
struct PredictiveConfig {
  std::vector<std::int64_t> encoder_layers = {750, 750}; // hidden, of states; MR.Q: 512
  std::int64_t state_features = 512;
  std::int64_t action_features = 256;
  std::vector<std::int64_t> pair_layers = {750, 750}; // hidden, of state and action; MR.Q: 512
  std::int64_t pair_features = 512;                   // of state and action together
  int encoder_channels = 32;                          // of pixels
  int shift_pixels = 4;                               // random shift of a sequence's pictures
  int horizon = 5;                                    // steps that are predicted
  double reward_weight = 0.1;                         // of the reward's cross entropy
  double termination_weight = 0;                      // of its squared error; MR.Q: 0.1
  double contrast_weight = 0.1;                       // of InfoNCE between the next features
  double contrast_temperature = 0.1;

  void add_members(Members& members);
  std::vector<OptionProblem> problems(const std::string& agent, const AgentSetting& setting) const;
};

/// The shapes of its networks, shared by the learning and the acting side.
struct PredictiveShape {
  /// Throws std::invalid_argument naming the observation and `agent`.
  PredictiveShape(const std::string& agent, const PredictiveConfig& config,
                  const replay::TransitionSpec& transitions);

  bool pixels = false;
  EncoderShape convolutions;           // pixels only
  std::int64_t inputs = 0;             // of `state`
  std::vector<LayerSpec> state_layers; // of `state`
  Mlp state;  // the observation, or what convolutions made of it -> its features
  Mlp action; // -> its features
  Mlp pair;   // features of a state, then of an action -> of both
  Mlp model;  // features of both -> the next state's, then logits of the reward
              // and, with a termination_weight, whether the episode terminates
  ParameterLayout layout;
  std::int64_t acting_count = 0; // of the first parameters, which features of a state need

  /// Fresh parameters, flat and dense.
  void initialise(const at::Tensor& flat, at::Generator& generator) const;
};

/// Layers of these widths and a linear output layer.
std::vector<LayerSpec> activated_layers(const std::vector<std::int64_t>& widths,
                                        Activation activation, std::int64_t outputs);

} // namespace troupe::learner
