#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learner/nn/kernels/ops.hpp"
#include "learner/nn/kernels/rounded_product.hpp"
#include "learner/nn/parameter_layout.hpp"

namespace troupe::learner {

struct LayerSpec {
  std::string name; // "layer0"
  std::int64_t outputs = 0;
  Activation activation = Activation::none;
  bool norm_input = false; // LayerNorm before the linear layer; not allowed with one after it
  bool residual = false;   // adds the output of two layers before; no activation
  bool fixed_norm = false; // its LayerNorm has no parameters: gain is 1, shift is 0
  bool exact = false;      // its product is not rounded to one part
};

/// The network of SimBa (Lee et al. 2025): a linear layer of `width`; then `blocks` times x +
/// linear(ReLU(linear(LayerNorm(x)))), four times as wide in between; then LayerNorm and a linear
/// layer of `outputs`. Deep networks of this kind learn where plain layers fail. They expect
/// observations normalised by their mean and deviation (running_moments.hpp).
std::vector<LayerSpec> residual_layers(std::int64_t width, int blocks, std::int64_t outputs);

/// Returns ReLU layers of these widths and a linear output layer. If `blocks` is above 0, returns
/// that many residual blocks of the single width instead (residual_layers()). Throws
/// std::invalid_argument for blocks with several widths.
std::vector<LayerSpec> relu_layers(const std::vector<std::int64_t>& widths, std::int64_t outputs,
                                   int blocks = 0);

/// The tensors of one layer, views of a flat tensor. gain and shift exist only with a LayerNorm;
/// those of a fixed LayerNorm are not views.
struct LayerTensors {
  at::Tensor weight; // [inputs, outputs]
  at::Tensor bias;
  at::Tensor gain;
  at::Tensor shift;
  // For products in bfloat16, one of these:
  at::Tensor half{}; // the weight in that type
  std::shared_ptr<RoundedWeight> rounded{};
};

struct RowPart;

/// What a forward pass keeps for the backward pass. The caller fills `gradient` of the last layer.
struct Tape {
  struct Layer {
    at::Tensor input;      // [batch, inputs] of the linear layer
    at::Tensor output;     // [batch, outputs]; not written if only the next half_input is used
    at::Tensor normalised; // only with a LayerNorm; in bfloat16 if the products are
    at::Tensor inverse;
    at::Tensor gradient;                // of the output, then of the activation's input
    at::Tensor half_input;              // only for products in bfloat16
    at::Tensor half_gradient;           // of the activation's input
    Rounding rounding = Rounding::none; // of products with AMX
  };
  std::vector<Layer> layers;
  at::Tensor input_gradient;  // [batch, first layer's inputs without the extra ones]
  at::Tensor extra_gradient;  // [batch, extra]
  std::vector<RowPart> parts; // of the rows, one per thread
  std::size_t used_parts = 0; // in the last forward pass; 0: all rows at once

  at::Tensor& output() { return layers.back().output; }
  at::Tensor& gradient() { return layers.back().gradient; }
};

/// Rows of a tape that one thread passes through the network, and what it needs for that.
struct RowPart {
  std::int64_t first = 0, count = 0;
  Tape tape;
  Workspace workspace{};
  std::vector<LayerTensors> gradients{}; // of these rows, unless they are the first
};

/// Returns a tape that views the rows [first, first + count) of another tape.
Tape rows_of(const Tape& tape, std::int64_t first, std::int64_t count);

/// A stack of linear layers with hand-written derivatives. `extra` inputs (a critic's action) are
/// appended to the input of one layer, which must not have norm_input.
///
/// Where this thread has measured products (use_products()) and several LibTorch threads, each
/// takes a part of the rows through all layers of a pass, so that it finds them in its own cache.
/// Sums over rows then depend on the number of threads.
class Mlp {
public:
  Mlp() = default;
  Mlp(std::int64_t inputs, std::vector<LayerSpec> layers, std::int64_t extra_layer = -1,
      std::int64_t extra = 0);

  /// Declares the names "<prefix>.<layer>.weight" etc. Call it once, before bind().
  void declare(ParameterLayout& layout, const std::string& prefix);
  /// `halves` is `flat` in bfloat16, refreshed by the caller. It is used for the products of all
  /// layers except narrow and exact ones and, on the CPU, layers that are faster in float32
  /// (rounding_is_faster()). If undefined, products have the type of `flat`.
  std::vector<LayerTensors> bind(const ParameterLayout& layout, const at::Tensor& flat,
                                 const Halves& halves = {}) const;
  enum class Weights : std::uint8_t {
    uniform,    // weights and biases in ±1/sqrt(inputs)
    orthogonal, // biases: 0
    xavier      // uniform in ±sqrt(12/(inputs + outputs)), biases: 0 (Glorot and Bengio 2010, for
                // ReLU: sqrt(2) times as wide)
  };
  void initialise(const ParameterLayout& layout, const at::Tensor& flat, Weights weights,
                  at::Generator& generator) const;
  std::int64_t layer_inputs(std::size_t layer) const;
  std::size_t size() const { return layers_.size(); }
  const LayerSpec& layer(std::size_t index) const { return layers_[index]; }

  /// Returns [batch, outputs of the last layer] inside the tape.
  at::Tensor& forward(const std::vector<LayerTensors>& parameters, const at::Tensor& x,
                      const at::Tensor& extra, Tape& tape, Workspace& workspace) const;

  /// Writes the gradients of all parameters, and tape.input_gradient if `with_input` is set.
  /// Without `with_weights`, the gradients of the weights are unchanged; other gradients that are
  /// undefined are skipped too.
  void backward(const std::vector<LayerTensors>& parameters, std::vector<LayerTensors>& gradients,
                Tape& tape, bool with_input, Workspace& workspace, bool with_weights = true) const;

  /// For a network that is applied several times, each time to different rows: reserve() makes a
  /// tape for all rows of x, and rows_of() gives its parts. When backward() without weights has
  /// filled every part, weight_gradients() writes the gradients of the weights.
  void reserve(const std::vector<LayerTensors>& parameters, const at::Tensor& x, Tape& tape) const;
  void weight_gradients(std::vector<LayerTensors>& gradients, const Tape& tape,
                        Workspace& workspace) const;
  /// Writes only tape.extra_gradient.
  void backward_to_extra(const std::vector<LayerTensors>& parameters, Tape& tape,
                         Workspace& workspace) const;

private:
  // Passes of all rows of a tape, on this thread.
  void pass_forward(const std::vector<LayerTensors>& parameters, const at::Tensor& x,
                    const at::Tensor& extra, Tape& tape, Workspace& workspace) const;
  void pass_backward(const std::vector<LayerTensors>& parameters,
                     std::vector<LayerTensors>& gradients, Tape& tape, bool with_input,
                     Workspace& workspace, bool with_weights) const;
  void pass_to_extra(const std::vector<LayerTensors>& parameters, Tape& tape,
                     Workspace& workspace) const;

  void prepare(const std::vector<LayerTensors>& parameters, const at::Tensor& x, Tape& tape) const;
  /// Whether the layer's norm takes a product in bfloat16 by rows.
  bool joins_halves(const Tape& tape, std::size_t layer) const;
  const at::Tensor& next_input(const Tape& tape, std::size_t layer) const;
  bool has_norm(std::size_t layer) const {
    return layers_[layer].norm_input || normalises(layers_[layer].activation);
  }
  std::int64_t norm_width(std::size_t layer) const {
    return layers_[layer].norm_input ? layer_inputs(layer) : layers_[layer].outputs;
  }
  void undo_activation(const std::vector<LayerTensors>& parameters, LayerTensors& gradients,
                       Tape& tape, std::size_t layer, bool is_left, Workspace& workspace) const;
  bool undo_linear(const std::vector<LayerTensors>& parameters, LayerTensors& gradients, Tape& tape,
                   std::size_t layer, at::Tensor& before, Workspace& workspace) const;

  std::int64_t inputs_ = 0;
  std::vector<LayerSpec> layers_;
  std::int64_t extra_layer_ = -1;
  std::int64_t extra_ = 0;
  std::size_t first_entry_ = 0;
};

} // namespace troupe::learner
