#pragma once

#include <memory>
#include <vector>

#include "learner/agents/learners/agent_update.hpp"
#include "learner/agents/learners/parameter_group.hpp"
#include "learner/agents/predictive/predictive_shape.hpp"

namespace troupe::learner {

/// Learns the features of PredictiveShape: from the features of a sequence's first observation and
/// its actions, a linear model predicts the current encoder's features and the rewards of the next
/// `horizon` steps, each from its own last prediction. What lies behind the end of an episode does
/// not count. The thread of its replica.
///
/// There are three encoders. learn() trains one, group().flat(). The current one, group().target(),
/// gives the features that critics and policy use, and the previous one those of target values.
/// Both stand still until promote().
class PredictiveEncoder {
public:
  PredictiveEncoder(const PredictiveConfig& config, const PredictiveShape& shape);

  struct Training {
    double learning_rate = 0;
    double gradient_norm = 0;
    double weight_decay = 0;
    std::string precision; // of the convolutions: make_encoder()
    bool halves = false;   // products of linear layers in bfloat16
  };
  void build(ReplicaContext& context, const at::TensorOptions& options, at::Generator& generator,
             const Training& training);
  ParameterGroup& group() { return group_; }
  /// After a load().
  void refresh_previous();
  /// The current encoder becomes the previous one, the trained one becomes the current one.
  void promote();
  /// The previous one, as views: "previous.<name>".
  void show_previous(TensorMap& out) const;

  /// One for each sequence of the batch; none from states.
  PictureShifts drawn_shifts(AgentUpdate& update, std::int64_t rows) const;

  /// A step on sequences, as checked_sequences() gives them; rows count by "weight". Before it, the
  /// current features of all observations up to the horizon, of which first_features() are some.
  /// Tells "encoder_loss" and its parts, "dynamics_loss", "reward_loss", "termination_loss" and
  /// "contrast_loss".
  void learn(AgentUpdate& update, const TensorMap& batch, const PictureShifts& shifts);
  /// [batch, state_features] of the first observations of the last learn(), valid until the next.
  at::Tensor first_features() { return known_tape_.output().narrow(0, 0, rows_); }

  enum class Which : std::uint8_t { current, previous };
  /// observation: [batch, …], dense; `shifts`: of pictures, one for each. [batch, state_features],
  /// valid until the next call.
  const at::Tensor& features_of(Which which, const at::Tensor& observation, PictureShifts shifts);
  /// [batch, pair_features], valid until the next call.
  const at::Tensor& pair_features(Which which, const at::Tensor& state, const at::Tensor& action);
  /// The gradient of the action of the last pair_features(), which were the current encoder's.
  const at::Tensor& action_gradient(const at::Tensor& of_pair);

private:
  using Layers = std::vector<LayerTensors>;
  struct Parts {
    EncoderShape::Tensors convolutions;
    Layers state, action, pair, model;
  };
  Parts parts_of(const at::Tensor& flat, const at::Tensor& halves) const;
  const at::Tensor& features(const Parts& parts, const at::Tensor& observation,
                             PictureShifts shifts, EncoderTape& pictures, Tape& tape);
  void unroll(const at::Tensor& actions);
  struct Losses { // each []
    at::Tensor dynamics, reward, termination, contrast;
  };
  at::Tensor model_gradient(const at::Tensor& target, const TensorMap& batch, Losses& losses);
  void unroll_backward();

  PredictiveConfig config_;
  PredictiveShape shape_;
  ParameterGroup group_;
  at::Tensor previous_flat_, previous_half_;
  at::TensorOptions options_;
  std::unique_ptr<Encoder> convolutions_;
  Parts trained_, gradients_, current_, previous_;
  std::int64_t rows_ = 0; // of the last learn()
  EncoderTape pictures_, known_pictures_, previous_pictures_;
  Tape state_tape_, known_tape_, previous_tape_, pair_action_tape_, pair_state_tape_;
  // Of the unrolled steps, step by step, and the part of each step
  Tape action_tape_, pair_tape_, model_tape_;
  std::vector<Tape> pair_steps_, model_steps_;
  at::Tensor pair_inputs_; // [horizon * batch, …]
  Workspace workspace_;
};

struct Contrast {
  double temperature = 1;
  double weight = 1;
  at::ScalarType products = at::kFloat;
};

/// InfoNCE: each prediction should be nearer to its own target than to those of the batch's other
/// rows. All [steps, batch, features], `within` [steps, batch] is how much a row counts; adds
/// weight * the derivative to `gradient`. Returns the loss, [], summed over steps.
at::Tensor contrast_loss(const at::Tensor& predicted, const at::Tensor& target,
                         const at::Tensor& within, const Contrast& how, at::Tensor& gradient);

} // namespace troupe::learner
