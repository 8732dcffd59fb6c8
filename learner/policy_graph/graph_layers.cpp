#include "learner/policy_graph/graph_layers.hpp"

#include <stdexcept>
#include <utility>

#include <torch/types.h>

namespace troupe::learner {
namespace {

GraphLayer::Activation activation_of(Activation activation) {
  switch (activation) {
  case Activation::none:
  case Activation::norm:
    return GraphLayer::Activation::none;
  case Activation::relu:
  case Activation::norm_relu:
    return GraphLayer::Activation::relu;
  case Activation::elu:
  case Activation::norm_elu:
    return GraphLayer::Activation::elu;
  case Activation::norm_tanh:
    return GraphLayer::Activation::tanh;
  }
  throw std::logic_error("no such activation");
}

} // namespace

std::vector<float> numbers_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
  return {dense.const_data_ptr<float>(), dense.const_data_ptr<float>() + dense.numel()};
}

PolicyGraph graph_of(const replay::TransitionSpec& transitions) {
  PolicyGraph graph;
  graph.picture = transitions.frame.type == env::ElementType::uint8;
  graph.inputs = static_cast<std::int64_t>(transitions.observation().elements());
  graph.vectors = static_cast<std::int64_t>(transitions.vector_elements());
  return graph;
}

std::int64_t graph_width(const PolicyGraph& graph) {
  return graph.layers.empty() ? graph.inputs : graph.layers.back().outputs;
}

void add_linear(PolicyGraph& graph, const at::Tensor& weight, const at::Tensor& bias,
                GraphLayer::Activation activation) {
  if (weight.size(0) != graph_width(graph))
    throw std::logic_error("a layer takes " + std::to_string(weight.size(0)) + " numbers behind "
                           + std::to_string(graph_width(graph)));
  graph.layers.push_back({.kind = GraphLayer::Kind::linear,
                          .activation = activation,
                          .inputs = weight.size(0),
                          .outputs = weight.size(1),
                          .weight = numbers_of(weight),
                          .bias = numbers_of(bias)});
}

void add_convolution(PolicyGraph& graph, const replay::TransitionSpec& transitions,
                     const at::Tensor& weight, const at::Tensor& bias, std::int64_t stride,
                     GraphLayer::Activation activation) {
  GraphLayer::Picture in;
  if (graph.layers.empty()) {
    const auto shape = transitions.observation().shape;
    in = {shape[0], shape[1], shape[2]};
  } else
    in = graph.layers.back().out;
  const std::int64_t kernel = weight.size(2);
  const GraphLayer::Picture out{weight.size(0), (in.height - kernel) / stride + 1,
                                (in.width - kernel) / stride + 1};
  graph.layers.push_back({.kind = GraphLayer::Kind::convolution,
                          .activation = activation,
                          .inputs = in.size(),
                          .outputs = out.size(),
                          .weight = numbers_of(weight),
                          .bias = numbers_of(bias),
                          .in = in,
                          .out = out,
                          .kernel = kernel,
                          .stride = stride});
}

void add_vectors(PolicyGraph& graph) {
  if (graph.vectors == 0)
    return;
  const std::int64_t before = graph_width(graph);
  graph.layers.push_back(
      {.kind = GraphLayer::Kind::vectors, .inputs = before, .outputs = before + graph.vectors});
}

void add_weightless(PolicyGraph& graph, GraphLayer::Kind kind, const at::Tensor& gain,
                    const at::Tensor& bias, GraphLayer::Activation activation) {
  const auto numbers = [](const at::Tensor& tensor) {
    return tensor.defined() ? numbers_of(tensor) : std::vector<float>();
  };
  const std::int64_t width = graph_width(graph);
  graph.layers.push_back({.kind = kind,
                          .activation = activation,
                          .inputs = width,
                          .outputs = bias.defined() ? bias.numel() : width,
                          .bias = numbers(bias),
                          .gain = numbers(gain)});
}

void add_moments(PolicyGraph& graph, const at::Tensor& moments) {
  const std::int64_t columns = moments.numel() / 2;
  add_weightless(graph, GraphLayer::Kind::affine, at::ones({columns}, at::kFloat),
                 -moments.narrow(0, 0, columns));
  add_weightless(graph, GraphLayer::Kind::affine, moments.narrow(0, columns, columns),
                 at::zeros({columns}, at::kFloat));
}

void add_mlp(PolicyGraph& graph, const Mlp& mlp, const std::vector<LayerTensors>& parameters) {
  using Kind = GraphLayer::Kind;
  for (std::size_t i = 0; i < mlp.size(); ++i) {
    const LayerTensors& layer = parameters[i];
    const bool normalised = normalises(mlp.layer(i).activation);
    const GraphLayer::Activation activation = activation_of(mlp.layer(i).activation);
    if (i + 1 < mlp.size() && mlp.layer(i + 1).residual)
      add_weightless(graph, Kind::keep);
    if (mlp.layer(i).norm_input)
      add_weightless(graph, Kind::layer_norm, layer.gain, layer.shift);
    add_linear(graph, layer.weight, layer.bias,
               normalised ? GraphLayer::Activation::none : activation);
    if (normalised)
      add_weightless(graph, Kind::layer_norm, layer.gain, layer.shift, activation);
    if (mlp.layer(i).residual)
      add_weightless(graph, Kind::add);
  }
}

void add_encoder(PolicyGraph& graph, const replay::TransitionSpec& transitions,
                 const EncoderShape& encoder, const EncoderShape::Tensors& parameters) {
  graph.picture_offset = -0.5;
  for (std::size_t i = 0; i < encoder.layers().size(); ++i) {
    const Convolution& c = encoder.layers()[i];
    const at::Tensor& stored = parameters.weight[i]; // [patch, channels]
    const at::Tensor weight =
        i == 0 ? stored.view({c.in.channels, c.kernel, c.kernel, -1}).permute({3, 0, 1, 2})
               : stored.view({c.kernel, c.kernel, c.in.channels, -1}).permute({3, 2, 0, 1});
    add_convolution(graph, transitions, weight, parameters.bias[i], c.stride,
                    activation_of(encoder.activation()));
  }
}

at::Tensor rows_by_channel(const EncoderShape& encoder, const at::Tensor& weight) {
  const ImageShape& out = encoder.layers().back().out;
  return weight.view({out.height, out.width, out.channels, weight.size(1)})
      .permute({2, 0, 1, 3})
      .reshape({out.size(), weight.size(1)});
}

} // namespace troupe::learner
