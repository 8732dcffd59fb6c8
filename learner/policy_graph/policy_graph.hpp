#pragma once

#include <cstdint>
#include <vector>

namespace troupe::learner {

/// A layer of a policy with its weights. Plain data.
struct GraphLayer {
  enum class Kind : std::uint8_t {
    convolution, // no padding; weight in PyTorch's layout, [outputs, inputs, kernel, kernel]
    vectors,     // appends the observation's vectors, `outputs - inputs` numbers
    last_choice, // appends a one-hot of the state's last number: last choice plus 1, 0: none
    linear,      // weight [inputs, outputs]
    layer_norm,  // over all inputs, then times gain plus bias; epsilon 1e-5
    affine,      // inputs times gain, plus bias; surplus biases become further outputs
    unit_length, // inputs divided by their Euclidean norm, or by 1e-8 if that is larger
    keep,        // outputs the inputs and keeps a copy for the next `add`
    add,         // kept + gain * (x - kept), or kept + x without a gain
    lstm         // weight [inputs + size, 4 * size]; gates: input, forget, output, new value
  };
  enum class Activation : std::uint8_t { none, relu, elu, tanh };
  /// [channels, height, width], only for convolutions. Their outputs are flattened in this order.
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

/// How consecutive outputs of the last layer become consecutive components of an action.
struct GraphAction {
  enum class Kind : std::uint8_t {
    tanh,   // `count` continuous numbers
    clamp,  // `count` continuous numbers, clamped to [-1, 1]
    choice, // the index of the largest of `choices` values, the first one if several are equal
    /// The index of the largest of `choices` expected values. Each is the mean of `atoms`
    /// equidistant numbers from minimum to maximum, weighted by the softmax of `atoms` outputs.
    distribution
  };
  Kind kind = Kind::tanh;
  std::int64_t count = 1;
  std::int64_t choices = 0;
  std::int64_t atoms = 1;
  double minimum = 0;
  double maximum = 0;
  /// Number of the last layer's outputs that it uses.
  std::int64_t outputs() const { return choices > 0 ? choices * atoms : count; }
};

/// A policy without exploration as a list of layers. It is exported, and writers of other formats
/// read it. The observation is float32 numbers, or a uint8 picture whose bytes are converted to x *
/// picture_scale + picture_offset. Actions are in [-1, 1]; choices are indices. The state consists
/// of the LSTM's outputs and cells, followed by the last choice plus 1, if there are such layers.
struct PolicyGraph {
  bool picture = false;
  std::int64_t inputs = 0; // numbers of the (stacked) frames, without the vectors
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
