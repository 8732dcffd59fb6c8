#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "env/spec.hpp"
#include "learner/agents/agent.hpp"
#include "learner/agents/parts/observed.hpp"
#include "learner/nn/parameter_layout.hpp"
#include "learner/policy_graph/policy_graph.hpp"

namespace troupe::learner {

/// The entries of a parameter layout as leaves of LibTorch's autograd. They are views of `flat`,
/// and backward() adds their gradients to `gradient`, which has the same length. Without `gradient`
/// the leaves require no gradient.
using Leaves = std::vector<at::Tensor>;
Leaves leaves_of(const ParameterLayout& layout, const at::Tensor& flat,
                 const at::Tensor& gradient = {});

/// Returns `size` standard normal numbers, on any device.
using NoiseSource = std::function<at::Tensor(std::int64_t size)>;

/// A linear layer. A noisy one (Fortunato et al. 2018) also has the noise scale of each parameter
/// as a parameter. The noise replaces random actions as exploration.
class Linear {
public:
  Linear() = default;
  Linear(ParameterLayout& layout, const std::string& name, std::int64_t inputs,
         std::int64_t outputs, bool noisy = false);

  /// Uniform in ±1/sqrt(inputs).
  void initialise(const ParameterLayout& layout, const at::Tensor& flat,
                  at::Generator& generator) const;
  /// Orthogonal rows or columns of length `gain`, no bias (Saxe et al. 2014).
  void initialise_orthogonal(const ParameterLayout& layout, const at::Tensor& flat,
                             at::Generator& generator, double gain) const;
  /// `noise`: the noise of a noisy layer; null: no noise.
  at::Tensor forward(const Leaves& leaves, const at::Tensor& x,
                     const NoiseSource* noise = nullptr) const;
  /// The parameters without noise: [inputs, outputs] and [outputs].
  const at::Tensor& weight(const Leaves& leaves) const { return leaves[first_]; }
  const at::Tensor& bias(const Leaves& leaves) const { return leaves[first_ + 1]; }

private:
  std::size_t first_ = 0; // entry of the weight; then bias, weight noise, bias noise
  std::int64_t inputs_ = 0;
  std::int64_t outputs_ = 0;
  bool noisy_ = false;
};

struct TorsoOptions {
  /// The encoder of pictures: "minatar" (one 3x3 layer of 16 channels; Young and Tian 2019) or
  /// "nature" (8x8/4, 4x4/2, 3x3 with 32, 64, 64; Mnih et al. 2015).
  std::string encoder = "minatar";
  std::vector<std::int64_t> widths;
  std::string name = "torso"; // prefix of its parameters
  bool tanh = false;          // after linear layers, instead of ReLU
};

/// The layers that several heads share. A picture, uint8 [channels, height, width], goes through
/// convolutions with ReLU. Linear layers take their outputs and the vectors of the observation.
class Torso {
public:
  /// Throws std::invalid_argument naming `agent` if the frames are neither a picture of sufficient
  /// size nor float32 [n].
  Torso(ParameterLayout& layout, const std::string& agent,
        const replay::TransitionSpec& transitions, const TorsoOptions& options);

  void initialise(const ParameterLayout& layout, const at::Tensor& flat,
                  at::Generator& generator) const;
  /// Initialises the layers orthogonally, so that they preserve the scale of their inputs.
  void initialise_orthogonal(const ParameterLayout& layout, const at::Tensor& flat,
                             at::Generator& generator) const;
  at::Tensor forward(const Leaves& leaves, const Observed& observation) const;
  /// Adds the layers of forward() to a graph for these transitions that has no layers yet.
  void describe(const Leaves& leaves, const replay::TransitionSpec& transitions,
                PolicyGraph& graph) const;
  std::int64_t features() const { return features_; }

private:
  struct Convolution {
    std::size_t first = 0; // weight [outputs, inputs, kernel, kernel], bias
    std::int64_t stride = 1;
  };
  std::vector<Convolution> convolutions_;
  std::vector<Linear> layers_;
  std::int64_t features_ = 0;
  bool tanh_ = false;
};

/// Height and width in pixels of the smallest picture that the encoder supports.
std::int64_t least_picture(const std::string& encoder);

/// The problems of an agent's key `encoder`, which takes pictures of at least `least` pixels. The
/// second function is for the encoders of Torso.
std::vector<OptionProblem> small_pictures(const std::string& agent, const std::string& encoder,
                                          std::int64_t least, const AgentSetting::Picture& picture);
std::vector<OptionProblem> small_pictures(const std::string& agent, const std::string& encoder,
                                          const AgentSetting& setting);

} // namespace troupe::learner
