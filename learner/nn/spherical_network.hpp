#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learner/nn/kernels/ops.hpp"
#include "learner/nn/kernels/rounded_product.hpp"
#include "learner/nn/parameter_layout.hpp"

namespace troupe::learner {

/// The network of SimbaV2 (Lee et al. 2025), whose features and weights have length 1. A constant
/// is appended to the inputs; they are normalised and become `width` features. Two linear layers,
/// four times as wide in between, compute a target from the input of each block, and the block
/// moves its features a learned part of the way to that target. Each part of the outputs has a
/// head of its own. Only the last linear layers have a bias; the outputs of linear layers have
/// learned scales. Derivatives are hand-written.
class SphericalNetwork {
public:
  SphericalNetwork() = default;
  /// `outputs`: the number of each head.
  SphericalNetwork(std::int64_t inputs, std::int64_t width, int blocks, std::int64_t outputs,
                   int heads = 1);

  struct Weight {
    at::Tensor whole; // [inputs, outputs]
    std::shared_ptr<RoundedWeight> rounded{};
  };
  struct Block {
    Weight expand;    // [width, 4 width]
    at::Tensor scale; // [4 width]
    Weight contract;  // [4 width, width]
    at::Tensor mix;   // [width]
  };
  struct Head {
    Weight weight;    // [width, width]
    at::Tensor scale; // [width]
    Weight output;    // [width, outputs]
    at::Tensor bias;  // [outputs]
  };
  /// Views of a flat tensor.
  struct Tensors {
    Weight embed;
    at::Tensor embed_scale;
    std::vector<Block> blocks;
    std::vector<Head> heads;
  };
  /// What a forward pass keeps for the backward pass.
  struct Trace {
    struct Step {
      at::Tensor input, product, hidden, direction, direction_inverse, inverse;
    };
    at::Tensor input, input_inverse, product, inverse;
    std::vector<Step> steps;
    at::Tensor features;
    struct Part {
      at::Tensor product, scaled;
    };
    std::vector<Part> heads;
  };

  /// Declares the names "<prefix>.embed.weight" etc., those of several heads behind "head0." etc.
  /// Call it once, before bind().
  void declare(ParameterLayout& layout, const std::string& prefix);
  /// `halves`, of `flat`, are used for products with AMX.
  Tensors bind(const ParameterLayout& layout, const at::Tensor& flat,
               const Halves& halves = {}) const;
  /// Sets orthogonal weights, each output's scaled to length 1.
  void initialise(const ParameterLayout& layout, const at::Tensor& flat,
                  at::Generator& generator) const;
  /// Divides the weights of each output by their length over all inputs. Call it after each step.
  static void project(const Tensors& parameters);

  /// x: [batch, inputs] -> [batch, heads * outputs].
  at::Tensor forward(const Tensors& parameters, const at::Tensor& x, Trace& trace,
                     Workspace& workspace) const;
  /// `gradient` is that of the outputs. Writes the gradients of the parameters unless `gradients`
  /// is null. Returns the gradient of x.
  at::Tensor backward(const Tensors& parameters, const Tensors* gradients, const Trace& trace,
                      const at::Tensor& gradient, Workspace& workspace) const;

  /// The part of the way that each feature moves in a block.
  at::Tensor mix(const Block& block) const { return block.mix * mix_factor(); }
  /// The constant appended to the inputs; it preserves their length as part of their direction.
  static constexpr double kConstantInput = 3;

private:
  double mix_factor() const;

  std::int64_t inputs_ = 0;
  std::int64_t width_ = 0;
  int blocks_ = 0;
  std::int64_t outputs_ = 0;
  int heads_ = 1;
  std::size_t first_entry_ = 0;
};

} // namespace troupe::learner
