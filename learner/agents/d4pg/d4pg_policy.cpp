#include <cstring>
#include <stdexcept>
#include <string>

#include <torch/types.h>

#include "learner/agents/d4pg/d4pg_networks.hpp"
#include "learner/nn/kernels/kernel_table.hpp"

namespace troupe::learner {
namespace {

/// A layer with its weight packed for the kernels once, at load().
struct ActingLayer {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  Activation activation = Activation::none;
  std::vector<float> weight;
  std::vector<float> bias;
  std::vector<float> gain;
  std::vector<float> shift;
};

std::vector<float> values(const at::Tensor& tensor) {
  const float* first = tensor.const_data_ptr<float>();
  return {first, first + tensor.numel()};
}

class D4pgPolicy : public Policy {
public:
  D4pgPolicy(const D4pgConfig& config, const D4pgSpec& spec)
      : networks_(config, spec), parameters_(at::zeros({networks_.acting_count()}, at::kFloat)) {
    if (networks_.pixels) {
      encoder_ = make_patch_encoder(networks_.encoder);
      encoder_tensors_ = networks_.encoder.bind(networks_.critic_layout, parameters_);
    }
    pack();
  }

  std::int64_t parameter_count() const override { return networks_.acting_count(); }
  void load(std::span<const float> parameters) override;
  void act(const Observations& observations, std::span<float> actions) override;

private:
  void pack();

  D4pgNetworks networks_;
  at::Tensor parameters_; // encoder, policy
  std::unique_ptr<Encoder> encoder_;
  EncoderShape::Tensors encoder_tensors_;
  EncoderTape tape_;
  std::vector<ActingLayer> layers_;
  std::vector<float> before_;
  std::vector<float> after_;
  std::vector<float> raw_;
  std::vector<float> inverse_;
};

void D4pgPolicy::load(std::span<const float> parameters) {
  if (static_cast<std::int64_t>(parameters.size()) != parameter_count())
    throw std::invalid_argument(
        "the policy has " + std::to_string(parameter_count()) + " parameters, not "
        + std::to_string(parameters.size())
        + "; learner and actors must be given the same d4pg settings and environment");
  if (!kernel_table().all_finite(parameters.data(), parameter_count()))
    throw std::invalid_argument("the policy's parameters hold NaN or infinity; they are refused");
  std::memcpy(parameters_.mutable_data_ptr<float>(), parameters.data(), parameters.size_bytes());
  pack();
}

void D4pgPolicy::pack() {
  const KernelTable& kernels = kernel_table();
  const at::Tensor flat =
      parameters_.narrow(0, networks_.encoder_count, networks_.policy_layout.count());
  const std::vector<LayerTensors> bound = networks_.policy.bind(networks_.policy_layout, flat);
  layers_.resize(bound.size());
  for (std::size_t i = 0; i < bound.size(); ++i) {
    ActingLayer& layer = layers_[i];
    layer.inputs = networks_.policy.layer_inputs(i);
    layer.outputs = networks_.policy.layer(i).outputs;
    layer.activation = networks_.policy.layer(i).activation;
    const std::int64_t step = kernels.panel_columns;
    layer.weight.resize(
        static_cast<std::size_t>(layer.inputs * ((layer.outputs + step - 1) / step * step)));
    kernels.pack(bound[i].weight.const_data_ptr<float>(), layer.outputs, 1, layer.inputs,
                 layer.outputs, layer.weight.data());
    layer.bias = values(bound[i].bias);
    if (layer.activation == Activation::norm_tanh) {
      layer.gain = values(bound[i].gain);
      layer.shift = values(bound[i].shift);
    }
  }
}

void D4pgPolicy::act(const Observations& observations, std::span<float> actions) {
  const std::int64_t batch = observations.batch;
  const std::int64_t element = networks_.pixels ? 1 : static_cast<std::int64_t>(sizeof(float));
  const std::size_t bytes = observations.frames.size() * observations.frame_bytes;
  if (batch < 1 || static_cast<std::int64_t>(bytes) != batch * networks_.observation_size * element
      || static_cast<std::int64_t>(actions.size()) != batch * networks_.action_size)
    throw std::invalid_argument(
        "act() got " + std::to_string(bytes) + " bytes of observations and "
        + std::to_string(actions.size()) + " actions for a batch of " + std::to_string(batch)
        + "; one observation has " + std::to_string(networks_.observation_size * element)
        + " bytes, one action " + std::to_string(networks_.action_size) + " values");
  const KernelTable& kernels = kernel_table();
  const float* x = nullptr;
  if (networks_.pixels) {
    tape_.frames = observations.frames;
    tape_.shifts.assign(static_cast<std::size_t>(batch), Shift{});
    encoder_->forward(encoder_tensors_, tape_);
    x = tape_.features.const_data_ptr<float>();
  } else {
    before_.resize(static_cast<std::size_t>(batch * networks_.observation_size));
    auto* to = reinterpret_cast<std::byte*>(before_.data());
    for (const std::byte* frame : observations.frames) {
      std::memcpy(to, frame, observations.frame_bytes);
      to += observations.frame_bytes;
    }
    if (!kernels.all_finite(before_.data(), batch * networks_.observation_size))
      throw std::runtime_error("NaN or infinity in an observation given to the policy");
    x = before_.data();
  }
  inverse_.resize(static_cast<std::size_t>(batch));
  for (const ActingLayer& layer : layers_) {
    const auto size = static_cast<std::size_t>(batch * layer.outputs);
    raw_.resize(std::max(raw_.size(), size));
    after_.resize(std::max(after_.size(), size));
    const bool normalises = layer.activation == Activation::norm_tanh;
    float* product = normalises ? raw_.data() : after_.data();
    kernels.multiply(x, layer.inputs, 1, layer.weight.data(), layer.bias.data(), false, product,
                     layer.outputs, batch, layer.outputs, layer.inputs);
    if (normalises)
      kernels.norm_tanh(product, layer.gain.data(), layer.shift.data(), after_.data(),
                        inverse_.data(), batch, layer.outputs);
    else if (layer.activation == Activation::elu)
      kernels.elu(product, batch * layer.outputs);
    else if (layer.activation == Activation::relu)
      kernels.relu(product, batch * layer.outputs);
    std::swap(before_, after_);
    x = before_.data();
  }
  kernels.tanh(x, actions.data(), batch * networks_.action_size);
}

} // namespace

std::unique_ptr<Policy> make_d4pg_policy(const D4pgConfig& config, const D4pgSpec& spec) {
  return std::make_unique<D4pgPolicy>(config, spec);
}

} // namespace troupe::learner
