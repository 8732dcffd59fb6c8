#include <cstring>
#include <stdexcept>
#include <string>

#include <torch/types.h>

#include "learner/agents/d4pg/d4pg_networks.hpp"
#include "learner/agents/parts/acting_mlp.hpp"
#include "learner/agents/parts/observed.hpp"
#include "learner/nn/kernels/kernel_table.hpp"

namespace troupe::learner {
namespace {

class D4pgPolicy : public Policy {
public:
  D4pgPolicy(const D4pgConfig& config, const D4pgSpec& spec)
      : networks_(config, spec),
        noise_(config.noise),
        parameters_(at::zeros({networks_.acting_count()}, at::kFloat)),
        mlp_(networks_.policy) {
    if (networks_.pixels) {
      encoder_ = make_patch_encoder(networks_.encoder);
      encoder_tensors_ = networks_.encoder.bind(networks_.critic_layout, parameters_);
    }
    pack();
  }

  std::int64_t parameter_count() const override { return networks_.acting_count(); }
  void load(std::span<const float> parameters) override;
  void act(const Observations& observations, std::span<float> actions) override;
  void explore(const Observations& observations, const Exploration& exploration,
               std::span<float> actions) override {
    Policy::explore(observations, exploration, actions);
    add_noise(noise_, exploration, actions);
  }

private:
  void pack();

  D4pgNetworks networks_;
  Schedule noise_;
  at::Tensor parameters_; // encoder, policy
  std::unique_ptr<Encoder> encoder_;
  EncoderShape::Tensors encoder_tensors_;
  EncoderTape tape_;
  ActingMlp mlp_;
  std::vector<float> states_;
};

void D4pgPolicy::load(std::span<const float> parameters) {
  load_parameters(parameters, parameters_, "d4pg");
  pack();
}

void D4pgPolicy::pack() {
  const at::Tensor flat =
      parameters_.narrow(0, networks_.encoder_count, networks_.policy_layout.count());
  mlp_.load(networks_.policy.bind(networks_.policy_layout, flat));
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
    states_.resize(static_cast<std::size_t>(batch * networks_.observation_size));
    auto* to = reinterpret_cast<std::byte*>(states_.data());
    for (const std::byte* frame : observations.frames) {
      std::memcpy(to, frame, observations.frame_bytes);
      to += observations.frame_bytes;
    }
    if (!kernels.all_finite(states_.data(), batch * networks_.observation_size))
      throw std::runtime_error("NaN or infinity in an observation given to the policy");
    x = states_.data();
  }
  kernels.tanh(mlp_.forward(x, batch), actions.data(), batch * networks_.action_size);
}

} // namespace

std::unique_ptr<Policy> make_d4pg_policy(const D4pgConfig& config, const D4pgSpec& spec) {
  return std::make_unique<D4pgPolicy>(config, spec);
}

} // namespace troupe::learner
