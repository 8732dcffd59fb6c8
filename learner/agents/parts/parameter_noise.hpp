#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/agents/parts/acting_mlp.hpp"
#include "learner/agents/parts/action_noise.hpp"

namespace troupe::learner {

/// Parameter noise (Plappert et al. 2018). Each environment acts with a copy of the network whose
/// weights and biases, except those of LayerNorm, are parameters + scale * noise. Each episode has
/// new noise. The scale adapts so that the distance between perturbed and unperturbed actions
/// follows the schedule.
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
  /// The network of one environment. Its noise is determined by the seed.
  struct Copy {
    bool drawn = false;
    std::uint64_t seed = 0;
    std::vector<LayerTensors> noise = {};
    std::vector<ActingMlp> network = {}; // empty: to be made from the parameters
  };
  void perturb(Copy& copy) const;
  void adapt(double wanted);

  Schedule distance_;
  Mlp network_;
  std::vector<LayerTensors> parameters_;
  std::vector<Copy> copies_; // [batch]
  std::vector<float> played_;
  double scale_ = 0;   // 0: not yet chosen
  double squares_ = 0; // sum of squared distances since the scale changed
  std::int64_t distances_ = 0;
  std::int64_t steps_ = 0; // steps of each environment since the scale changed
};

} // namespace troupe::learner
