#include "learner/nn/mlp.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "learner/nn/activation_probe.hpp"
#include "learner/nn/row_parts.hpp"

namespace troupe::learner {
namespace {

/// Whether the layer's products have factors in bfloat16. `rounding`: with AMX.
bool multiplies_halves(const LayerTensors& p, Rounding rounding, std::int64_t rows) {
  return rounding == Rounding::one_part
         || (p.half.defined()
             && (!p.weight.is_cpu()
                 || rounding_is_faster(Rounding::one_part, rows, p.weight.size(0),
                                       p.weight.size(1))));
}

HalfFactor forward_factor(const LayerTensors& p) {
  return {p.half, p.rounded != nullptr ? p.rounded->forward() : nullptr, p.weight.size(1)};
}

/// The transposed weight of the first `inputs`.
HalfFactor backward_factor(const LayerTensors& p, std::int64_t inputs) {
  if (p.rounded != nullptr)
    return {{}, p.rounded->transposed(), inputs};
  return {p.half.narrow(0, 0, inputs).t(), nullptr, inputs};
}

at::Tensor first_rows(const at::Tensor& weight, std::int64_t count) {
  return weight.size(0) == count ? weight : weight.narrow(0, 0, count);
}

void weight_gradient(const Tape::Layer& layer, LayerTensors& gradients, Workspace& workspace) {
  if (layer.half_input.defined())
    half_weight_gradient(layer.half_input, layer.half_gradient,
                         layer.rounding == Rounding::one_part, gradients.weight, workspace);
  else if (layer.rounding == Rounding::two_parts)
    rounded_weight_gradient(layer.input, layer.gradient, layer.rounding, gradients.weight,
                            workspace);
  else
    linear_weight_gradient(layer.input, layer.gradient, gradients.weight, workspace);
}

/// half_input must be set if it is defined.
void product(const LayerTensors& p, const Tape::Layer& layer, at::Tensor& out,
             Workspace& workspace) {
  if (layer.half_input.defined())
    half_linear(layer.half_input, forward_factor(p), p.bias, out, workspace);
  else if (layer.rounding == Rounding::two_parts)
    rounded_linear(layer.input, *p.rounded, p.bias, out);
  else
    linear(layer.input, p.weight, p.bias, out, workspace);
}

/// Writes the gradient of the first inputs of the layer, as many as `before` has.
void input_gradient(const LayerTensors& p, const Tape::Layer& layer, at::Tensor& before,
                    Workspace& workspace) {
  if (layer.half_gradient.defined())
    half_linear(layer.half_gradient, backward_factor(p, before.size(1)), {}, before, workspace);
  else if (layer.rounding == Rounding::two_parts)
    rounded_input_gradient(layer.gradient, *p.rounded, before);
  else
    linear_input_gradient(layer.gradient, first_rows(p.weight, before.size(1)), before, workspace);
}

/// The norm of a layer's rows from `first`. `y`: the output in float32; `half_y`: in bfloat16; one
/// may be undefined.
HalfNorm norm_of(Activation activation, const LayerTensors& p, const Tape::Layer& layer,
                 const at::Tensor& y, const at::Tensor& half_y, std::int64_t first) {
  return half_norm_at(activation, p.gain, p.shift, layer.normalised, layer.inverse, y, half_y,
                      first);
}

} // namespace

std::vector<LayerSpec> residual_layers(std::int64_t width, int blocks, std::int64_t outputs) {
  constexpr std::int64_t kExpansion = 4;
  std::vector<LayerSpec> layers{{"input", width}};
  for (int i = 0; i < blocks; ++i) {
    const std::string name = "block" + std::to_string(i);
    layers.push_back({name + ".expand", kExpansion * width, Activation::relu, true});
    layers.push_back({name + ".contract", width, Activation::none, false, true});
  }
  layers.push_back({"output", outputs, Activation::none, true});
  return layers;
}

std::vector<LayerSpec> relu_layers(const std::vector<std::int64_t>& widths, std::int64_t outputs,
                                   int blocks) {
  if (blocks > 0) {
    if (widths.size() != 1)
      throw std::invalid_argument("a network of residual blocks has "
                                  + std::to_string(widths.size()) + " widths; it must have one");
    return residual_layers(widths[0], blocks, outputs);
  }
  std::vector<LayerSpec> layers;
  for (std::size_t i = 0; i < widths.size(); ++i)
    layers.push_back({"layer" + std::to_string(i), widths[i], Activation::relu});
  layers.push_back({"output", outputs, Activation::none});
  return layers;
}

Mlp::Mlp(std::int64_t inputs, std::vector<LayerSpec> layers, std::int64_t extra_layer,
         std::int64_t extra)
    : inputs_(inputs), layers_(std::move(layers)), extra_layer_(extra_layer), extra_(extra) {}

std::int64_t Mlp::layer_inputs(std::size_t layer) const {
  const std::int64_t before = layer == 0 ? inputs_ : layers_[layer - 1].outputs;
  return before + (static_cast<std::int64_t>(layer) == extra_layer_ ? extra_ : 0);
}

void Mlp::declare(ParameterLayout& layout, const std::string& prefix) {
  first_entry_ = layout.entries().size();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const std::string name = prefix + "." + layers_[i].name;
    layout.add(name + ".weight", {layer_inputs(i), layers_[i].outputs}, {1, 0});
    layout.add(name + ".bias", {layers_[i].outputs});
    if (has_norm(i) && !layers_[i].fixed_norm) {
      layout.add(name + ".norm.weight", {norm_width(i)});
      layout.add(name + ".norm.bias", {norm_width(i)});
    }
  }
}

std::vector<LayerTensors> Mlp::bind(const ParameterLayout& layout, const at::Tensor& flat,
                                    const Halves& halves) const {
  std::vector<LayerTensors> bound;
  std::size_t entry = first_entry_;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    LayerTensors& layer = bound.emplace_back();
    layer.weight = layout.stored_view(flat, entry);
    if (may_round(layer.weight, halves, layers_[i].exact)) {
      if (halves.flat().defined())
        layer.half = layout.stored_view(halves.flat(), entry);
      else
        layer.rounded = std::make_shared<RoundedWeight>(layer.weight, halves);
    }
    ++entry;
    layer.bias = layout.stored_view(flat, entry++);
    if (has_norm(i) && layers_[i].fixed_norm) {
      layer.gain = at::ones({norm_width(i)}, flat.options());
      layer.shift = at::zeros({norm_width(i)}, flat.options());
    } else if (has_norm(i)) {
      layer.gain = layout.stored_view(flat, entry++);
      layer.shift = layout.stored_view(flat, entry++);
    }
  }
  return bound;
}

void Mlp::initialise(const ParameterLayout& layout, const at::Tensor& flat, Weights weights,
                     at::Generator& generator) const {
  for (LayerTensors& layer : bind(layout, flat)) {
    const double bound = 1 / std::sqrt(static_cast<double>(layer.weight.size(0)));
    if (weights == Weights::orthogonal) {
      orthogonal(layer.weight, 1, generator);
      layer.bias.zero_();
    } else if (weights == Weights::xavier) {
      const auto sizes = static_cast<double>(layer.weight.size(0) + layer.weight.size(1));
      layer.weight.uniform_(-std::sqrt(12 / sizes), std::sqrt(12 / sizes), generator);
      layer.bias.zero_();
    } else {
      layer.weight.uniform_(-bound, bound, generator);
      layer.bias.uniform_(-bound, bound, generator);
    }
    if (layer.gain.defined()) {
      layer.gain.fill_(1);
      layer.shift.zero_();
    }
  }
}

void Mlp::prepare(const std::vector<LayerTensors>& parameters, const at::Tensor& x,
                  Tape& tape) const {
  const std::int64_t batch = x.size(0);
  if (!tape.layers.empty() && tape.output().size(0) == batch)
    return;
  tape = {};
  tape.layers.resize(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Tape::Layer& layer = tape.layers[i];
    if (static_cast<std::int64_t>(i) == extra_layer_ || layers_[i].norm_input)
      layer.input = at::empty({batch, layer_inputs(i)}, x.options());
    layer.output = at::empty({batch, layers_[i].outputs}, x.options());
    layer.gradient = at::empty_like(layer.output);
    if (parameters[i].rounded != nullptr)
      layer.rounding = parameters[i].rounded->rounding(batch);
    if (multiplies_halves(parameters[i], layer.rounding, batch)) {
      layer.half_input = make_halves(batch, layer_inputs(i), x.options());
      layer.half_gradient = make_halves(batch, layers_[i].outputs, x.options());
    }
    if (has_norm(i)) {
      layer.normalised = at::empty_like(layers_[i].norm_input ? layer.input : layer.output);
      if (joins_halves(tape, i))
        layer.normalised = at::empty_like(layer.output, at::kBFloat16);
      layer.inverse = at::empty({batch}, x.options());
    }
  }
  tape.input_gradient = at::empty({batch, inputs_}, x.options());
  tape.extra_gradient = at::empty({batch, extra_}, x.options());
}

bool Mlp::joins_halves(const Tape& tape, std::size_t layer) const {
  return tape.layers[layer].half_input.defined() && uses_kernels(tape.layers[layer].output)
         && normalises(layers_[layer].activation);
}

/// The next layer's input in bfloat16 if the norm of this layer writes it, else undefined.
const at::Tensor& Mlp::next_input(const Tape& tape, std::size_t layer) const {
  static const at::Tensor none;
  const std::size_t next = layer + 1;
  const bool takes_output = next < layers_.size() && static_cast<std::int64_t>(next) != extra_layer_
                            && !layers_[next].norm_input && !layers_[layer].residual;
  return takes_output && joins_halves(tape, layer) ? tape.layers[next].half_input : none;
}

at::Tensor& Mlp::forward(const std::vector<LayerTensors>& parameters, const at::Tensor& x,
                         const at::Tensor& extra, Tape& tape, Workspace& workspace) const {
  prepare(parameters, x, tape);
  split_rows(parameters, tape);
  if (tape.used_parts == 0)
    pass_forward(parameters, x, extra, tape, workspace);
  pack_weights(parameters, tape, false);
  over_parts(tape, [&](RowPart& part) {
    const auto rows = [&](const at::Tensor& all) {
      return all.defined() ? all.narrow(0, part.first, part.count) : all;
    };
    pass_forward(parameters, rows(x), rows(extra), part.tape, part.workspace);
  });
  return tape.output();
}

void Mlp::pass_forward(const std::vector<LayerTensors>& parameters, const at::Tensor& x,
                       const at::Tensor& extra, Tape& tape, Workspace& workspace) const {
  ActivationProbe* const probe = ActivationProbe::active();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Tape::Layer& layer = tape.layers[i];
    const at::Tensor& before = i == 0 ? x : tape.layers[i - 1].output;
    if (static_cast<std::int64_t>(i) == extra_layer_) {
      join_columns(before, extra, layer.input);
    } else if (layers_[i].norm_input) {
      layer.normalised.copy_(before);
      norm(Activation::norm, layer.normalised, parameters[i].gain, parameters[i].shift, layer.input,
           layer.inverse);
    } else {
      layer.input = before;
    }
    const LayerTensors& p = parameters[i];
    const bool is_narrowed = i > 0 && next_input(tape, i - 1).defined();
    if (layer.half_input.defined() && !is_narrowed)
      narrow_into(layer.input, layer.half_input);
    if (joins_halves(tape, i)) {
      const at::Tensor& next = next_input(tape, i);
      const at::Tensor y = !next.defined() || probe != nullptr ? layer.output : at::Tensor();
      each_rows(layer.half_input, forward_factor(p), p.bias, workspace,
                [&](std::int64_t first, std::int64_t count, float* rows) {
                  kernel_table().half_norm(norm_of(layers_[i].activation, p, layer, y, next, first),
                                           rows, count, layers_[i].outputs);
                });
    } else if (normalises(layers_[i].activation)) {
      product(p, layer, layer.normalised, workspace);
      norm(layers_[i].activation, layer.normalised, p.gain, p.shift, layer.output, layer.inverse);
    } else {
      product(p, layer, layer.output, workspace);
      activate(layers_[i].activation, layer.output);
    }
    if (layers_[i].residual)
      layer.output.add_(tape.layers[i - 2].output);
    if (probe != nullptr && i + 1 == layers_.size())
      probe->see_features(p.weight, layer.input, layer.output);
    else if (probe != nullptr && layers_[i].activation != Activation::none)
      probe->see_units(p.weight, layer.output);
  }
}

/// `is_left`: the product of undo_linear() is left to this.
void Mlp::undo_activation(const std::vector<LayerTensors>& parameters, LayerTensors& gradients,
                          Tape& tape, std::size_t index, bool is_left, Workspace& workspace) const {
  Tape::Layer& layer = tape.layers[index];
  const LayerTensors& p = parameters[index];
  if (joins_halves(tape, index)) {
    const NormSums sums = zeroed(gradients.gain, gradients.shift, gradients.bias);
    const at::Tensor& next = next_input(tape, index);
    const std::int64_t n = layers_[index].outputs;
    const auto undo = [&](std::int64_t first, std::int64_t count, float* rows) {
      kernel_table().half_norm_backward(
          norm_of(layers_[index].activation, p, layer, layer.output, next, first), rows,
          halves_at(layer.half_gradient, first), layer.half_gradient.stride(0), sums, count, n);
    };
    if (is_left)
      return each_rows(tape.layers[index + 1].half_gradient,
                       backward_factor(parameters[index + 1], n), {}, workspace, undo);
    return undo(0, layer.gradient.size(0), layer.gradient.mutable_data_ptr<float>());
  }
  if (normalises(layers_[index].activation))
    norm_backward(layers_[index].activation, layer.output, layer.normalised, layer.inverse, p.gain,
                  layer.gradient, gradients.gain, gradients.shift, gradients.bias);
  else
    activate_backward(layers_[index].activation, layer.output, layer.gradient, gradients.bias);
  if (layer.half_gradient.defined())
    narrow_into(layer.gradient, layer.half_gradient);
}

/// Writes the gradient of the inputs of layer `index`, without the extra inputs, to `before`.
/// Returns true if it leaves that to the norm of the layer before, which takes it by rows.
bool Mlp::undo_linear(const std::vector<LayerTensors>& parameters, LayerTensors& gradients,
                      Tape& tape, std::size_t index, at::Tensor& before,
                      Workspace& workspace) const {
  const Tape::Layer& layer = tape.layers[index];
  const LayerTensors& p = parameters[index];
  const bool is_added = index + 1 < layers_.size() && layers_[index + 1].residual;
  if (layer.half_gradient.defined() && index > 0 && joins_halves(tape, index - 1)
      && !layers_[index].norm_input && static_cast<std::int64_t>(index) - 1 != extra_layer_
      && !is_added)
    return true;
  input_gradient(p, layer, before, workspace);
  at::Tensor no_bias;
  if (layers_[index].norm_input)
    norm_backward(Activation::norm, layer.input, layer.normalised, layer.inverse, p.gain, before,
                  gradients.gain, gradients.shift, no_bias);
  if (is_added)
    before.add_(tape.layers[index + 1].gradient);
  return false;
}

void Mlp::backward(const std::vector<LayerTensors>& parameters,
                   std::vector<LayerTensors>& gradients, Tape& tape, bool with_input,
                   Workspace& workspace, bool with_weights) const {
  if (tape.used_parts == 0)
    return pass_backward(parameters, gradients, tape, with_input, workspace, with_weights);
  pack_weights(parameters, tape, true);
  over_parts(tape, [&](RowPart& part) {
    std::vector<LayerTensors> own = gradients_of(part, gradients);
    pass_backward(parameters, own, part.tape, with_input, part.workspace, with_weights);
  });
  add_gradients(tape, gradients, with_weights);
}

void Mlp::pass_backward(const std::vector<LayerTensors>& parameters,
                        std::vector<LayerTensors>& gradients, Tape& tape, bool with_input,
                        Workspace& workspace, bool with_weights) const {
  bool is_left = false;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Tape::Layer& layer = tape.layers[i];
    undo_activation(parameters, gradients[i], tape, i, is_left, workspace);
    if (with_weights)
      weight_gradient(layer, gradients[i], workspace);
    if (i == 0 && !with_input)
      return;
    at::Tensor& before = i == 0 ? tape.input_gradient : tape.layers[i - 1].gradient;
    is_left = undo_linear(parameters, gradients[i], tape, i, before, workspace);
  }
}

void Mlp::reserve(const std::vector<LayerTensors>& parameters, const at::Tensor& x,
                  Tape& tape) const {
  prepare(parameters, x, tape);
  for (std::size_t i = 0; i < layers_.size(); ++i)
    if (static_cast<std::int64_t>(i) != extra_layer_ && !layers_[i].norm_input)
      tape.layers[i].input = i == 0 ? x : tape.layers[i - 1].output;
}

void Mlp::weight_gradients(std::vector<LayerTensors>& gradients, const Tape& tape,
                           Workspace& workspace) const {
  for (std::size_t i = 0; i < layers_.size(); ++i)
    weight_gradient(tape.layers[i], gradients[i], workspace);
}

void Mlp::backward_to_extra(const std::vector<LayerTensors>& parameters, Tape& tape,
                            Workspace& workspace) const {
  if (tape.used_parts == 0)
    pass_to_extra(parameters, tape, workspace);
  pack_weights(parameters, tape, true);
  over_parts(tape, [&](RowPart& part) { pass_to_extra(parameters, part.tape, part.workspace); });
}

void Mlp::pass_to_extra(const std::vector<LayerTensors>& parameters, Tape& tape,
                        Workspace& workspace) const {
  LayerTensors none;
  bool is_left = false;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Tape::Layer& layer = tape.layers[i];
    undo_activation(parameters, none, tape, i, is_left, workspace);
    if (static_cast<std::int64_t>(i) == extra_layer_) {
      const at::Tensor rows =
          parameters[i].weight.narrow(0, parameters[i].weight.size(0) - extra_, extra_);
      linear_input_gradient(layer.gradient, rows, tape.extra_gradient, workspace);
      return;
    }
    is_left = undo_linear(parameters, none, tape, i, tape.layers[i - 1].gradient, workspace);
  }
}

} // namespace troupe::learner
