#include "learner/agents/parts/acting_network.hpp"

#include <cstring>
#include <stdexcept>

#include <torch/types.h>

#include "learner/nn/kernels/kernel_table.hpp"

namespace troupe::learner {

ActingNetwork::ActingNetwork(const replay::TransitionSpec& transitions, const Mlp& layers,
                             const EncoderShape* encoder)
    : observation_bytes_(transitions.observation().bytes()),
      action_size_(transitions.action_size),
      layers_(layers) {
  if (encoder != nullptr)
    encoder_ = make_patch_encoder(*encoder);
}

void ActingNetwork::load(const std::vector<LayerTensors>& layers,
                         const EncoderShape::Tensors& encoder, const at::Tensor& moments) {
  layers_.load(layers);
  moments_ = moments;
  encoder_parameters_ = encoder;
}

const float* ActingNetwork::outputs(const Observations& observations,
                                    std::span<const float> actions) {
  const std::int64_t batch = observations.batch;
  const std::size_t bytes = observations.frames.size() * observations.frame_bytes;
  if (batch < 1 || bytes != static_cast<std::size_t>(batch) * observation_bytes_
      || static_cast<std::int64_t>(actions.size()) != batch * action_size_)
    throw std::invalid_argument("the policy got " + std::to_string(bytes)
                                + " bytes of observations and " + std::to_string(actions.size())
                                + " actions for a batch of " + std::to_string(batch)
                                + "; one observation has " + std::to_string(observation_bytes_)
                                + " bytes, one action " + std::to_string(action_size_) + " values");
  if (encoder_) {
    tape_.frames = observations.frames;
    tape_.shifts.drawn.assign(static_cast<std::size_t>(batch), Shift{});
    encoder_->forward(encoder_parameters_, tape_);
    inputs_ = tape_.features.const_data_ptr<float>();
    return layers_.forward(inputs_, batch);
  }
  states_.resize(bytes / sizeof(float));
  auto* to = reinterpret_cast<std::byte*>(states_.data());
  for (const std::byte* frame : observations.frames) {
    std::memcpy(to, frame, observations.frame_bytes);
    to += observations.frame_bytes;
  }
  if (!kernel_table().all_finite(states_.data(), static_cast<std::int64_t>(states_.size())))
    throw std::runtime_error("NaN or infinity in an observation given to the policy");
  if (moments_.defined()) {
    const auto columns = static_cast<std::size_t>(moments_.numel() / 2);
    const float* mean = moments_.const_data_ptr<float>();
    for (std::size_t i = 0; i < states_.size(); ++i)
      states_[i] = (states_[i] - mean[i % columns]) * mean[columns + i % columns];
  }
  inputs_ = states_.data();
  return layers_.forward(inputs_, batch);
}

} // namespace troupe::learner
