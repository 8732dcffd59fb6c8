#pragma once

#include <cstdint>

#include "learner/agents/d4pg/d4pg.hpp"
#include "learner/nn/categorical.hpp"
#include "learner/nn/encoder.hpp"
#include "learner/nn/mlp.hpp"

namespace troupe::learner {

/// The shapes of D4PG's networks, shared by the learning and the acting side. States: policy and
/// critic are layers on the observation (the critic's on observation and action). Pixels: both take
/// the encoder's features through separate trunks (linear, LayerNorm, tanh); the action joins after
/// the critic's trunk.
struct D4pgNetworks {
  /// Throws std::invalid_argument naming the key.
  D4pgNetworks(const D4pgConfig& config, const D4pgSpec& spec);

  bool pixels = false;
  std::int64_t observation_size = 0; // elements
  std::int64_t action_size = 0;
  EncoderShape encoder; // pixels only
  Mlp policy;
  Mlp critic;
  Support support;
  ParameterLayout critic_layout; // encoder (first), critic: one optimizer
  ParameterLayout policy_layout;
  std::int64_t encoder_count = 0; // parameters of the encoder

  /// Of the published policy: encoder, then policy.
  std::int64_t acting_count() const { return encoder_count + policy_layout.count(); }

  /// Fresh parameters; `critic` and `policy` are flat and dense.
  void initialise(at::Tensor critic_flat, at::Tensor policy_flat, std::uint64_t seed) const;
};

} // namespace troupe::learner
