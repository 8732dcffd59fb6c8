#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "learner/acting/policy.hpp"
#include "learner/agents/agent.hpp"
#include "learner/agents/parts/acting_mlp.hpp"
#include "learner/nn/encoder.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// The network of a policy on observations as environments give them: pixels through an encoder,
/// states straight into the layers. float32 on the CPU. One thread.
class ActingNetwork {
public:
  /// `encoder`: of pixels; null: states.
  ActingNetwork(const replay::TransitionSpec& transitions, const Mlp& layers,
                const EncoderShape* encoder = nullptr);

  /// Copies the layers' parameters and refers to the encoder's and to `moments`, by which states
  /// are normalised (RunningMoments::published(); undefined: they are not).
  void load(const std::vector<LayerTensors>& layers, const EncoderShape::Tensors& encoder = {},
            const at::Tensor& moments = {});
  /// [batch, outputs], valid until the next call. Throws std::invalid_argument on spans of other
  /// sizes, `actions` included, std::runtime_error on an observation that is not finite.
  const float* outputs(const Observations& observations, std::span<const float> actions);
  /// [batch, inputs] of the layers at the last outputs().
  const float* inputs() const { return inputs_; }

private:
  std::size_t observation_bytes_;
  std::int64_t action_size_;
  ActingMlp layers_;
  std::unique_ptr<Encoder> encoder_;
  EncoderShape::Tensors encoder_parameters_;
  EncoderTape tape_;
  at::Tensor moments_;
  std::vector<float> states_;
  const float* inputs_ = nullptr;
};

} // namespace troupe::learner
