#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/agents/parts/acting_mlp.hpp"
#include "learner/agents/parts/action_noise.hpp"

namespace troupe::learner {

/// Parameter noise (Plappert et al. 2018): each environment acts with a copy of the network whose
/// weights and biases, not those of LayerNorm, are parameters + scale * noise, with noise of its
/// own in each episode. The scale adapts so that the actions are the scheduled distance from those
/// of the parameters.
class ParameterNoise : public ActionNoise {
public:
  ParameterNoise(const Schedule& distance, const Mlp& network)
      : distance_(distance), network_(network) {}

  void load(const std::vector<LayerTensors>& parameters) override;
  void apply(const float* x, const Exploration& exploration, std::span<float> actions) override;
  void save_state(std::vector<std::byte>& out) const override;
  std::span<const std::byte> load_state(std::span<const std::byte> in) override;

  double scale() const { return scale_; }

private:
  /// An environment's network. Its noise follows from the seed.
  struct Copy {
    bool drawn = false;
    std::uint64_t seed = 0;
    std::vector<LayerTensors> noise = {};
    std::vector<ActingMlp> network = {}; // empty: to be made of the parameters
  };
  void perturb(Copy& copy) const;
  void adapt(double wanted);

  Schedule distance_;
  Mlp network_;
  std::vector<LayerTensors> parameters_;
  std::vector<Copy> copies_; // [batch]
  std::vector<float> played_;
  double scale_ = 0;   // 0: not yet chosen
  double squares_ = 0; // of the distances since the scale changed
  std::int64_t distances_ = 0;
  std::int64_t steps_ = 0; // of each environment since then
};

} // namespace troupe::learner
