#include "learner/nn/spherical_network.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/types.h>

#include "learner/nn/activation_probe.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kWider = 4;    // ratio of a block's hidden features to its width
constexpr double kLeastLength = 1e-8; // minimum length of a normalised vector

/// Scales each row to length 1. `inverse` receives 1 / its length before.
at::Tensor unit_rows(const at::Tensor& x, at::Tensor& inverse) {
  inverse = x.norm(2, {1}, true).clamp_min_(kLeastLength).reciprocal_();
  return x * inverse;
}

at::Tensor unit_rows_backward(const at::Tensor& unit, const at::Tensor& inverse,
                              const at::Tensor& gradient) {
  return (gradient - unit * (unit * gradient).sum(1, true)).mul_(inverse);
}

Rounding rounding_of(const SphericalNetwork::Weight& weight, std::int64_t rows) {
  return weight.rounded == nullptr ? Rounding::none : weight.rounded->rounding(rows);
}

at::Tensor product(const at::Tensor& x, const SphericalNetwork::Weight& weight,
                   const at::Tensor& bias, Workspace& workspace) {
  at::Tensor out = at::empty({x.size(0), weight.whole.size(1)}, x.options());
  if (rounding_of(weight, x.size(0)) != Rounding::none)
    rounded_linear(x, *weight.rounded, bias, out);
  else
    linear(x, weight.whole, bias, out, workspace);
  return out;
}

at::Tensor without_bias(const at::Tensor& x, const SphericalNetwork::Weight& weight,
                        Workspace& workspace) {
  return product(x, weight, at::zeros({weight.whole.size(1)}, x.options()), workspace);
}

/// Backward pass of a product x * weight. Writes the weight's gradient to `of_weight` if that is
/// defined, and returns the gradient of x.
at::Tensor product_backward(const at::Tensor& x, const SphericalNetwork::Weight& weight,
                            const at::Tensor& gradient, at::Tensor of_weight,
                            Workspace& workspace) {
  const at::Tensor dense = gradient.contiguous();
  const Rounding rounding = rounding_of(weight, x.size(0));
  if (of_weight.defined() && rounding != Rounding::none)
    rounded_weight_gradient(x, dense, rounding, of_weight, workspace);
  else if (of_weight.defined())
    linear_weight_gradient(x, dense, of_weight, workspace);
  at::Tensor of_x = at::empty_like(x);
  if (rounding != Rounding::none)
    rounded_input_gradient(dense, *weight.rounded, of_x);
  else
    linear_input_gradient(dense, weight.whole, of_x, workspace);
  return of_x;
}

void sum_into(at::Tensor to, const at::Tensor& rows) {
  if (to.defined())
    to.copy_(rows.sum(0));
}

} // namespace

SphericalNetwork::SphericalNetwork(std::int64_t inputs, std::int64_t width, int blocks,
                                   std::int64_t outputs, int heads)
    : inputs_(inputs), width_(width), blocks_(blocks), outputs_(outputs), heads_(heads) {}

void SphericalNetwork::declare(ParameterLayout& layout, const std::string& prefix) {
  first_entry_ = layout.entries().size();
  const auto weight = [&](const std::string& name, std::int64_t from, std::int64_t to) {
    layout.add(prefix + "." + name + ".weight", {from, to}, {1, 0});
  };
  const auto vector = [&](const std::string& name, std::int64_t size) {
    layout.add(prefix + "." + name, {size});
  };
  weight("embed", inputs_ + 1, width_);
  vector("embed.scale", width_);
  for (int i = 0; i < blocks_; ++i) {
    const std::string block = "block" + std::to_string(i);
    weight(block + ".expand", width_, kWider * width_);
    vector(block + ".expand.scale", kWider * width_);
    weight(block + ".contract", kWider * width_, width_);
    vector(block + ".mix", width_);
  }
  for (int i = 0; i < heads_; ++i) {
    const std::string part = heads_ == 1 ? "" : "head" + std::to_string(i) + ".";
    weight(part + "head", width_, width_);
    vector(part + "head.scale", width_);
    weight(part + "output", width_, outputs_);
    vector(part + "output.bias", outputs_);
  }
}

SphericalNetwork::Tensors SphericalNetwork::bind(const ParameterLayout& layout,
                                                 const at::Tensor& flat,
                                                 const Halves& halves) const {
  std::size_t entry = first_entry_;
  const auto next = [&] { return layout.stored_view(flat, entry++); };
  const auto weight = [&] {
    Weight made{next()};
    if (may_round(made.whole, halves))
      made.rounded = std::make_shared<RoundedWeight>(made.whole, halves);
    return made;
  };
  Tensors made;
  made.embed = weight();
  made.embed_scale = next();
  made.blocks.resize(static_cast<std::size_t>(blocks_));
  for (Block& block : made.blocks) {
    block.expand = weight();
    block.scale = next();
    block.contract = weight();
    block.mix = next();
  }
  made.heads.resize(static_cast<std::size_t>(heads_));
  for (Head& head : made.heads) {
    head.weight = weight();
    head.scale = next();
    head.output = weight();
    head.bias = next();
  }
  return made;
}

/// A stored mix of 1 / sqrt(width), the size at which Adam moves it like a weight, means 1 /
/// (blocks + 1).
double SphericalNetwork::mix_factor() const {
  return std::sqrt(static_cast<double>(width_)) / (blocks_ + 1);
}

void SphericalNetwork::initialise(const ParameterLayout& layout, const at::Tensor& flat,
                                  at::Generator& generator) const {
  const Tensors made = bind(layout, flat);
  const auto width = static_cast<double>(width_);
  orthogonal(made.embed.whole, 1, generator);
  at::Tensor(made.embed_scale).fill_(std::sqrt(2 / width));
  for (const Block& block : made.blocks) {
    orthogonal(block.expand.whole, 1, generator);
    orthogonal(block.contract.whole, 1, generator);
    at::Tensor(block.scale).fill_(std::sqrt(2 / (kWider * width)));
    at::Tensor(block.mix).fill_(1 / std::sqrt(width));
  }
  for (const Head& head : made.heads) {
    orthogonal(head.weight.whole, 1, generator);
    orthogonal(head.output.whole, 1, generator);
    at::Tensor(head.scale).fill_(1); // outputs are not normalised, so it is their size
    at::Tensor(head.bias).zero_();
  }
  project(made);
}

void SphericalNetwork::project(const Tensors& parameters) {
  const auto unit = [](const Weight& weight) {
    at::Tensor whole = weight.whole;
    whole.div_(whole.norm(2, {0}, true).clamp_min_(kLeastLength));
  };
  unit(parameters.embed);
  for (const Block& block : parameters.blocks) {
    unit(block.expand);
    unit(block.contract);
  }
  for (const Head& head : parameters.heads) {
    unit(head.weight);
    unit(head.output);
  }
}

at::Tensor SphericalNetwork::forward(const Tensors& parameters, const at::Tensor& x, Trace& trace,
                                     Workspace& workspace) const {
  const at::Tensor constant = at::full({x.size(0), 1}, kConstantInput, x.options());
  trace.input = unit_rows(at::cat({x, constant}, 1), trace.input_inverse);
  trace.product = without_bias(trace.input, parameters.embed, workspace);
  at::Tensor features = unit_rows(trace.product * parameters.embed_scale, trace.inverse);
  trace.steps.resize(parameters.blocks.size());
  ActivationProbe* const probe = ActivationProbe::active();
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const Block& block = parameters.blocks[i];
    Trace::Step& step = trace.steps[i];
    step.input = features;
    step.product = without_bias(features, block.expand, workspace);
    step.hidden = (step.product * block.scale).relu_();
    if (probe != nullptr)
      probe->see_units(block.expand.whole, step.hidden);
    step.direction =
        unit_rows(without_bias(step.hidden, block.contract, workspace), step.direction_inverse);
    features = unit_rows(features + (step.direction - features) * mix(block), step.inverse);
  }
  trace.features = features;
  trace.heads.resize(parameters.heads.size());
  std::vector<at::Tensor> outputs;
  for (std::size_t i = 0; i < trace.heads.size(); ++i) {
    const Head& head = parameters.heads[i];
    Trace::Part& part = trace.heads[i];
    part.product = without_bias(features, head.weight, workspace);
    part.scaled = part.product * head.scale;
    outputs.push_back(product(part.scaled, head.output, head.bias, workspace));
    if (probe != nullptr)
      probe->see_features(head.output.whole, part.scaled, outputs.back());
  }
  return outputs.size() == 1 ? outputs.front() : at::cat(outputs, 1);
}

at::Tensor SphericalNetwork::backward(const Tensors& parameters, const Tensors* gradients,
                                      const Trace& trace, const at::Tensor& gradient,
                                      Workspace& workspace) const {
  Tensors none;
  none.blocks.resize(parameters.blocks.size());
  none.heads.resize(parameters.heads.size());
  const Tensors& to = gradients != nullptr ? *gradients : none;
  at::Tensor of_features;
  for (std::size_t i = 0; i < trace.heads.size(); ++i) {
    const Head& head = parameters.heads[i];
    const Head& of_head = to.heads[i];
    const Trace::Part& part = trace.heads[i];
    const at::Tensor of_outputs =
        gradient.narrow(1, static_cast<std::int64_t>(i) * outputs_, outputs_);
    sum_into(of_head.bias, of_outputs);
    const at::Tensor of_scaled =
        product_backward(part.scaled, head.output, of_outputs, of_head.output.whole, workspace);
    sum_into(of_head.scale, of_scaled * part.product);
    const at::Tensor of_input = product_backward(
        trace.features, head.weight, of_scaled * head.scale, of_head.weight.whole, workspace);
    of_features = i == 0 ? of_input : of_features + of_input;
  }
  for (std::size_t i = trace.steps.size(); i-- > 0;) {
    const Block& block = parameters.blocks[i];
    const Block& of_block = to.blocks[i];
    const Trace::Step& step = trace.steps[i];
    const at::Tensor& after =
        i + 1 < trace.steps.size() ? trace.steps[i + 1].input : trace.features;
    const at::Tensor part = mix(block);
    const at::Tensor of_mixed = unit_rows_backward(after, step.inverse, of_features);
    sum_into(of_block.mix, of_mixed * (step.direction - step.input) * mix_factor());
    const at::Tensor of_direction =
        unit_rows_backward(step.direction, step.direction_inverse, of_mixed * part);
    at::Tensor of_hidden = product_backward(step.hidden, block.contract, of_direction,
                                            of_block.contract.whole, workspace);
    of_hidden.mul_(step.hidden > 0);
    sum_into(of_block.scale, of_hidden * step.product);
    of_features = of_mixed * (1 - part)
                  + product_backward(step.input, block.expand, of_hidden * block.scale,
                                     of_block.expand.whole, workspace);
  }
  const at::Tensor& first = trace.steps.empty() ? trace.features : trace.steps.front().input;
  const at::Tensor of_embedded = unit_rows_backward(first, trace.inverse, of_features);
  sum_into(to.embed_scale, of_embedded * trace.product);
  const at::Tensor of_input =
      product_backward(trace.input, parameters.embed, of_embedded * parameters.embed_scale,
                       to.embed.whole, workspace);
  return unit_rows_backward(trace.input, trace.input_inverse, of_input).narrow(1, 0, inputs_);
}

} // namespace troupe::learner
