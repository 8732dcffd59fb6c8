#pragma once

#include <memory>
#include <vector>

#include "learner/agents/learners/agent_update.hpp"
#include "learner/agents/learners/parameter_group.hpp"
#include "learner/agents/predictive/predictive_shape.hpp"

namespace troupe::learner {

/// Trains the features of PredictiveShape. Starting from the features of a sequence's first
/// observation, a linear model predicts the current encoder's features and the rewards of the next
/// `horizon` steps. Each prediction is computed from the previous one and the next action. Steps
/// after the end of an episode do not count. Must be used on its replica's thread.
///
/// There are three encoders. learn() trains one of them, group().flat(). The current one,
/// group().target(), computes the features for critics and policy, and the previous one those for
/// target values. Both are fixed until promote().
class PredictiveEncoder {
public:
  PredictiveEncoder(const PredictiveConfig& config, const PredictiveShape& shape);

  /// `precision` is that of convolutions, see make_encoder().
  void build(ReplicaContext& context, const at::TensorOptions& options, at::Generator& generator,
             const Training& training, const std::string& precision);
  ParameterGroup& group() { return group_; }
  /// Must be called after parameters were loaded.
  void refresh_previous();
  /// The current encoder becomes the previous one, and a copy of the trained encoder becomes the
  /// current one.
  void promote();
  /// Adds views of the previous encoder's parameters: "previous.<name>".
  void show_previous(TensorMap& out) const;

  /// Draws a shift for each of `pictures` pictures; none for states.
  PictureShifts drawn_shifts(AgentUpdate& update, std::int64_t pictures) const;

  /// Makes a step on sequences as returned by checked_sequences(), weighted by "weight". Before the
  /// step, it computes the current features of all observations up to the horizon; first_features()
  /// are a part of them. Each picture has its own shift, so that features that depend on the shift
  /// cannot be predicted. Reports "encoder_loss" and its parts, "dynamics_loss", "reward_loss",
  /// "termination_loss" and "contrast_loss".
  void learn(AgentUpdate& update, const TensorMap& batch);
  /// The features [batch, state_features] of the first observations in the last learn(), valid
  /// until the next.
  at::Tensor first_features() { return known_tape_.output().narrow(0, 0, rows_); }

  enum class Which : std::uint8_t { current, previous };
  /// Computes features [batch, state_features], valid until the next call. observation: [batch, …],
  /// dense; `shifts`: one for each picture.
  const at::Tensor& features_of(Which which, const at::Tensor& observation, PictureShifts shifts);
  /// Returns [batch, pair_features], valid until the next call.
  const at::Tensor& pair_features(Which which, const at::Tensor& state, const at::Tensor& action);
  /// The gradient with respect to the action of the last pair_features(), which must have used the
  /// current encoder.
  const at::Tensor& action_gradient(const at::Tensor& of_pair);

private:
  using Layers = std::vector<LayerTensors>;
  struct Parts {
    EncoderShape::Tensors convolutions;
    Layers state, action, pair, model;
  };
  Parts parts_of(const at::Tensor& flat, const Halves& halves) const;
  const at::Tensor& features(const Parts& parts, const at::Tensor& observation,
                             PictureShifts shifts, EncoderTape& pictures, Tape& tape);
  void unroll(const at::Tensor& actions);
  struct Losses { // each []
    at::Tensor dynamics, reward, termination, contrast;
  };
  Losses model_losses(const at::Tensor& target, const TensorMap& batch);
  void unroll_backward();

  PredictiveConfig config_;
  PredictiveShape shape_;
  ParameterGroup group_;
  at::Tensor previous_flat_;
  Halves previous_half_;
  at::TensorOptions options_;
  std::unique_ptr<Encoder> convolutions_;
  Parts trained_, gradients_, current_, previous_;
  std::int64_t rows_ = 0; // in the last learn()
  EncoderTape pictures_, known_pictures_, previous_pictures_;
  Tape state_tape_, known_tape_, previous_tape_, pair_action_tape_, pair_state_tape_;
  // Tapes of all unrolled steps, and views of single steps.
  Tape action_tape_, pair_tape_, model_tape_;
  std::vector<Tape> pair_steps_, model_steps_;
  at::Tensor pair_inputs_; // [horizon * batch, …]
  Workspace workspace_;
};

} // namespace troupe::learner
