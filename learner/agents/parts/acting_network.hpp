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

/// A policy's network on observations in the environment's own format. Pixels go through an
/// encoder; states are the direct input of the layers. float32 on the CPU. Not thread-safe.
class ActingNetwork {
public:
  /// `encoder`: shape of the encoder for pixels; null: states.
  ActingNetwork(const replay::TransitionSpec& transitions, const Mlp& layers,
                const EncoderShape* encoder = nullptr);

  /// Copies the parameters of the layers. Keeps references to those of the encoder and to
  /// `moments`, which normalise states (RunningMoments::published(); undefined: no normalisation).
  void load(const std::vector<LayerTensors>& layers, const EncoderShape::Tensors& encoder = {},
            const at::Tensor& moments = {});
  /// Returns [batch, outputs], valid until the next call. Throws std::invalid_argument if a span,
  /// including `actions`, has the wrong size, and std::runtime_error if an observation is not
  /// finite.
  const float* outputs(const Observations& observations, std::span<const float> actions);
  /// The inputs of the layers in the last outputs(), [batch, inputs].
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
