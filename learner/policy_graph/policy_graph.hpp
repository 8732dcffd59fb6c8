#pragma once

#include <cstdint>
#include <vector>

namespace troupe::learner {

/// A layer of a policy, with its numbers. Plain data.
struct GraphLayer {
  enum class Kind : std::uint8_t {
    convolution, // without padding; weight as PyTorch has it, [outputs, inputs, kernel, kernel]
    vectors,     // appends the observation's vectors, `outputs - inputs` numbers
    last_choice, // appends a one-hot of the last choice plus 1 (0: none), the state's last number
    linear,      // weight [inputs, outputs]
    layer_norm,  // over all numbers, then gain and bias; epsilon 1e-5
    affine,      // each number times its gain, plus its bias; then the biases that are left
    unit_length, // divided by their length, at least 1e-8
    keep,        // as they are, and kept for the next `add`
    add,         // kept + gain * (x - kept); without a gain kept + x
    lstm         // weight [inputs + size, 4 * size] of gates input, forget, output and new value
  };
  enum class Activation : std::uint8_t { none, relu, elu, tanh };
  /// [channels, height, width]; only of convolutions. Their outputs are flattened in this order.
  struct Picture {
    std::int64_t channels = 0;
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::int64_t size() const { return channels * height * width; }
  };

  Kind kind = Kind::linear;
  Activation activation = Activation::none;
  std::int64_t inputs = 0; // numbers
  std::int64_t outputs = 0;
  std::vector<float> weight = {};
  std::vector<float> bias = {};
  std::vector<float> gain = {};
  Picture in = {};
  Picture out = {};
  std::int64_t kernel = 0;
  std::int64_t stride = 0;
};

/// How some numbers of the last layer make neighbouring numbers of an action.
struct GraphAction {
  enum class Kind : std::uint8_t {
    tanh,   // `count` continuous numbers
    clamp,  // the same, to [-1, 1]
    choice, // the largest of `choices` values, the first of equal ones
    /// The largest of `choices` expectations: each the mean of `atoms` equidistant numbers from
    /// minimum to maximum, with the softmax of as many outputs as weights.
    distribution
  };
  Kind kind = Kind::tanh;
  std::int64_t count = 1;
  std::int64_t choices = 0;
  std::int64_t atoms = 1;
  double minimum = 0;
  double maximum = 0;
  /// Of the last layer that it takes.
  std::int64_t outputs() const { return choices > 0 ? choices * atoms : count; }
};

/// A policy without exploration as a list of layers: what is exported, and what writers of other
/// formats read. The observation enters as float32 numbers, or as a uint8 picture whose bytes
/// become x * picture_scale + picture_offset. Actions are in [-1, 1], choices as they are. State:
/// the LSTM's outputs and cells, then the last choice plus 1, where there are such layers.
struct PolicyGraph {
  bool picture = false;
  std::int64_t inputs = 0; // numbers of the (stacked) frames, the vectors left out
  std::int64_t vectors = 0;
  double picture_scale = 1.0 / 255;
  double picture_offset = 0;
  std::vector<GraphLayer> layers = {};
  std::vector<GraphAction> actions = {};

  std::int64_t state_size() const {
    std::int64_t size = 0;
    for (const GraphLayer& layer : layers)
      size += layer.kind == GraphLayer::Kind::lstm          ? 2 * layer.outputs
              : layer.kind == GraphLayer::Kind::last_choice ? 1
                                                            : 0;
    return size;
  }
  std::int64_t action_size() const {
    std::int64_t size = 0;
    for (const GraphAction& action : actions)
      size += action.count;
    return size;
  }
};

} // namespace troupe::learner
