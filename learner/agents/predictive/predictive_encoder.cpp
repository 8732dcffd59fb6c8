#include "learner/agents/predictive/predictive_encoder.hpp"

#include <utility>

#include <torch/types.h>

#include "learner/agents/predictive/model_losses.hpp"
#include "learner/agents/predictive/sequence_returns.hpp"
#include "learner/nn/two_hot.hpp"

namespace troupe::learner {
namespace {

/// Reorders [batch, steps, …] to [steps * batch, …].
at::Tensor by_step(const at::Tensor& sequences) {
  return sequences.transpose(0, 1).contiguous().flatten(0, 1);
}

/// Adds the gradients of biases and norms of one step to those of all steps.
void add_gradients(const std::vector<LayerTensors>& one, std::vector<LayerTensors>& all) {
  for (std::size_t i = 0; i < one.size(); ++i) {
    all[i].bias.add_(one[i].bias);
    if (one[i].gain.defined()) {
      all[i].gain.add_(one[i].gain);
      all[i].shift.add_(one[i].shift);
    }
  }
}

/// Allocates tensors for the gradients of one step; weights are left out.
std::vector<LayerTensors> scratch_like(const std::vector<LayerTensors>& layers) {
  std::vector<LayerTensors> made;
  for (const LayerTensors& layer : layers) {
    LayerTensors& one = made.emplace_back();
    one.bias = at::empty_like(layer.bias);
    if (layer.gain.defined()) {
      one.gain = at::empty_like(layer.gain);
      one.shift = at::empty_like(layer.shift);
    }
  }
  return made;
}

} // namespace

PredictiveEncoder::PredictiveEncoder(const PredictiveConfig& config, const PredictiveShape& shape)
    : config_(config), shape_(shape) {
  group_.declare(shape_.layout);
}

PredictiveEncoder::Parts PredictiveEncoder::parts_of(const at::Tensor& flat,
                                                     const Halves& halves) const {
  const ParameterLayout& layout = group_.layout();
  return {shape_.pixels ? shape_.convolutions.bind(layout, flat) : EncoderShape::Tensors(),
          shape_.state.bind(layout, flat, halves), shape_.action.bind(layout, flat, halves),
          shape_.pair.bind(layout, flat, halves), shape_.model.bind(layout, flat, halves)};
}

void PredictiveEncoder::build(ReplicaContext& context, const at::TensorOptions& options,
                              at::Generator& generator, const Training& training,
                              const std::string& precision) {
  options_ = options;
  const at::Tensor flat = at::zeros({group_.layout().count()}, options.device(at::kCPU));
  shape_.initialise(flat, generator);
  group_.build(context, flat.to(options.device()), training);
  previous_flat_ = group_.flat().clone();
  previous_half_ = Halves(previous_flat_, training.rounding);
  trained_ = parts_of(group_.flat(), group_.half());
  gradients_ = parts_of(group_.gradient(), {});
  current_ = parts_of(group_.target(), group_.target_half());
  previous_ = parts_of(previous_flat_, previous_half_);
  if (shape_.pixels)
    convolutions_ = make_encoder(shape_.convolutions, precision, options.device());
}

PictureShifts PredictiveEncoder::drawn_shifts(AgentUpdate& update, std::int64_t pictures) const {
  return shape_.pixels ? update.shifts(pictures, config_.shift_pixels) : PictureShifts();
}

void PredictiveEncoder::promote() {
  previous_flat_.copy_(group_.target());
  group_.target().copy_(group_.flat());
  group_.refresh_halves();
  refresh_previous();
}

void PredictiveEncoder::refresh_previous() {
  previous_half_.refresh(previous_flat_);
}

void PredictiveEncoder::show_previous(TensorMap& out) const {
  group_.layout().show(previous_flat_, "previous.", out);
}

const at::Tensor& PredictiveEncoder::features(const Parts& parts, const at::Tensor& observation,
                                              PictureShifts shifts, EncoderTape& pictures,
                                              Tape& tape) {
  if (!shape_.pixels)
    return shape_.state.forward(parts.state, observation.to(options_), {}, tape, workspace_);
  pictures.images = observation.to(options_.device());
  pictures.shifts = std::move(shifts);
  convolutions_->forward(parts.convolutions, pictures);
  return shape_.state.forward(parts.state, pictures.features, {}, tape, workspace_);
}

const at::Tensor& PredictiveEncoder::features_of(Which which, const at::Tensor& observation,
                                                 PictureShifts shifts) {
  return features(which == Which::current ? current_ : previous_, observation, std::move(shifts),
                  previous_pictures_, previous_tape_);
}

const at::Tensor& PredictiveEncoder::pair_features(Which which, const at::Tensor& state,
                                                   const at::Tensor& action) {
  const Parts& parts = which == Which::current ? current_ : previous_;
  const at::Tensor& of_action =
      shape_.action.forward(parts.action, action, {}, pair_action_tape_, workspace_);
  return shape_.pair.forward(parts.pair, at::cat({state, of_action}, 1), {}, pair_state_tape_,
                             workspace_);
}

const at::Tensor& PredictiveEncoder::action_gradient(const at::Tensor& of_pair) {
  Layers none(current_.pair.size());
  pair_state_tape_.gradient().copy_(of_pair);
  shape_.pair.backward(current_.pair, none, pair_state_tape_, true, workspace_, false);
  pair_action_tape_.gradient().copy_(
      pair_state_tape_.input_gradient.narrow(1, config_.state_features, config_.action_features));
  shape_.action.backward(current_.action, none, pair_action_tape_, true, workspace_, false);
  return pair_action_tape_.input_gradient;
}

/// Computes the model's outputs of each step from the features of the first state and the actions.
void PredictiveEncoder::unroll(const at::Tensor& actions) {
  const std::int64_t width = config_.state_features;
  const at::Tensor& of_action =
      shape_.action.forward(trained_.action, actions, {}, action_tape_, workspace_);
  if (!pair_inputs_.defined() || pair_inputs_.size(0) != actions.size(0)) {
    const std::int64_t batch = actions.size(0) / config_.horizon;
    pair_inputs_ = at::empty({actions.size(0), width + config_.action_features}, options_);
    shape_.pair.reserve(trained_.pair, pair_inputs_, pair_tape_);
    shape_.model.reserve(trained_.model, pair_tape_.output(), model_tape_);
    pair_tape_.layers.back().gradient = model_tape_.input_gradient;
    pair_steps_.clear();
    model_steps_.clear();
    for (int t = 0; t < config_.horizon; ++t) {
      pair_steps_.push_back(rows_of(pair_tape_, t * batch, batch));
      model_steps_.push_back(rows_of(model_tape_, t * batch, batch));
    }
  }
  pair_inputs_.narrow(1, width, config_.action_features).copy_(of_action);
  const std::int64_t batch = actions.size(0) / config_.horizon;
  at::Tensor state = state_tape_.output();
  for (std::size_t t = 0; t < pair_steps_.size(); ++t) {
    const at::Tensor input = pair_inputs_.narrow(0, static_cast<std::int64_t>(t) * batch, batch);
    input.narrow(1, 0, width).copy_(state);
    const at::Tensor& pair =
        shape_.pair.forward(trained_.pair, input, {}, pair_steps_[t], workspace_);
    state = shape_.model.forward(trained_.model, pair, {}, model_steps_[t], workspace_)
                .narrow(1, 0, width);
  }
}

/// Computes the losses and the gradient of the model's outputs in model_tape_.
PredictiveEncoder::Losses PredictiveEncoder::model_losses(const at::Tensor& target,
                                                          const TensorMap& batch) {
  const std::int64_t width = config_.state_features;
  const std::int64_t rows = batch.at("reward").size(0);
  const auto share = 1.0 / static_cast<double>(rows);
  const auto shaped = [&](const at::Tensor& x) { return x.unflatten(0, {config_.horizon, rows}); };
  at::Tensor within = steps_within(batch, config_.horizon, options_);
  if (batch.contains("weight"))
    within = within * batch.at("weight").to(options_).unsqueeze(1);
  within = within.t().contiguous();
  const at::Tensor outputs = shaped(model_tape_.output());
  const at::Tensor gradient = shaped(model_tape_.gradient());
  const at::Tensor predicted = outputs.narrow(2, 0, width);
  at::Tensor of_state = gradient.narrow(2, 0, width);
  const auto mean = [&](const at::Tensor& losses) { return (losses * within).sum() * share; };

  Losses losses;
  const double per_feature = 1 / static_cast<double>(width);
  losses.dynamics =
      mean(squared_error(predicted, shaped(target), within, share * per_feature, of_state))
      * per_feature;
  const at::Tensor wanted =
      shaped(two_hot(by_step(batch.at("reward").narrow(1, 0, config_.horizon)).to(options_)));
  at::Tensor of_reward = gradient.narrow(2, width, kRewardBins);
  losses.reward = mean(softmax_error(outputs.narrow(2, width, kRewardBins), wanted, within,
                                     config_.reward_weight * share, of_reward));

  losses.termination = losses.contrast = at::zeros({}, options_);
  if (config_.termination_weight > 0) {
    const at::Tensor ends =
        1 - shaped(by_step(batch.at("discount").narrow(1, 0, config_.horizon)).to(options_));
    const at::Tensor miss = outputs.select(2, width + kRewardBins) - ends;
    gradient.select(2, width + kRewardBins)
        .copy_(miss * within * (2 * config_.termination_weight * share));
    losses.termination = mean(miss.square());
  }
  if (config_.contrast_weight > 0)
    losses.contrast = contrast_loss(
        predicted, shaped(target), within,
        {.temperature = config_.contrast_temperature,
         .weight = config_.contrast_weight,
         .products = group_.half().defined() ? at::kBFloat16 : predicted.scalar_type()},
        of_state);
  return losses;
}

/// Computes the gradients of the encoder's parameters from that of the model's outputs in
/// model_tape_.
void PredictiveEncoder::unroll_backward() {
  const std::int64_t width = config_.state_features;
  Layers of_pair = scratch_like(trained_.pair), of_model = scratch_like(trained_.model);
  for (Layers* all : {&gradients_.pair, &gradients_.model})
    for (LayerTensors& layer : *all)
      for (at::Tensor* tensor : {&layer.bias, &layer.gain, &layer.shift})
        if (tensor->defined())
          tensor->zero_();
  at::Tensor of_state; // gradient of the features at the beginning of a step
  for (std::size_t t = pair_steps_.size(); t-- > 0;) {
    if (of_state.defined())
      model_steps_[t].gradient().narrow(1, 0, width).add_(of_state);
    shape_.model.backward(trained_.model, of_model, model_steps_[t], true, workspace_, false);
    shape_.pair.backward(trained_.pair, of_pair, pair_steps_[t], true, workspace_, false);
    add_gradients(of_model, gradients_.model);
    add_gradients(of_pair, gradients_.pair);
    of_state = pair_steps_[t].input_gradient.narrow(1, 0, width);
  }
  shape_.model.weight_gradients(gradients_.model, model_tape_, workspace_);
  shape_.pair.weight_gradients(gradients_.pair, pair_tape_, workspace_);
  action_tape_.gradient().copy_(
      pair_tape_.input_gradient.narrow(1, width, config_.action_features));
  shape_.action.backward(trained_.action, gradients_.action, action_tape_, false, workspace_);
  state_tape_.gradient().copy_(of_state);
  shape_.state.backward(trained_.state, gradients_.state, state_tape_, shape_.pixels, workspace_);
  if (shape_.pixels)
    convolutions_->backward(trained_.convolutions, gradients_.convolutions, pictures_,
                            state_tape_.input_gradient);
}

void PredictiveEncoder::learn(AgentUpdate& update, const TensorMap& batch) {
  const at::Tensor& observation = batch.at("observation");
  rows_ = observation.size(0);
  const at::Tensor seen = by_step(observation.narrow(1, 0, config_.horizon + 1));
  const at::Tensor& known =
      features(current_, seen, drawn_shifts(update, seen.size(0)), known_pictures_, known_tape_);
  const at::Tensor target = known.narrow(0, rows_, config_.horizon * rows_);
  features(trained_, seen.narrow(0, 0, rows_), drawn_shifts(update, rows_), pictures_, state_tape_);
  unroll(by_step(batch.at("action").narrow(1, 0, config_.horizon)).to(options_));
  const Losses losses = model_losses(target, batch);
  unroll_backward();
  const at::Tensor whole = losses.dynamics + config_.reward_weight * losses.reward
                           + config_.termination_weight * losses.termination
                           + config_.contrast_weight * losses.contrast;
  update.step(group_, "encoder_loss", whole);
  update.tell("encoder_loss", whole);
  update.tell("dynamics_loss", losses.dynamics);
  update.tell("reward_loss", losses.reward);
  update.tell("termination_loss", losses.termination);
  update.tell("contrast_loss", losses.contrast);
}

} // namespace troupe::learner
