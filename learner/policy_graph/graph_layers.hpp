#pragma once

#include "learner/nn/encoder.hpp"
#include "learner/nn/mlp.hpp"
#include "learner/policy_graph/policy_graph.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// A graph without layers that takes these observations.
PolicyGraph graph_of(const replay::TransitionSpec& transitions);

/// The numbers of a float tensor on the CPU, of any layout.
std::vector<float> numbers_of(const at::Tensor& tensor);

/// Numbers behind the layers so far.
std::int64_t graph_width(const PolicyGraph& graph);

/// weight: [inputs, outputs]; bias: [outputs].
void add_linear(PolicyGraph& graph, const at::Tensor& weight, const at::Tensor& bias,
                GraphLayer::Activation activation = GraphLayer::Activation::none);
/// weight: [outputs, inputs, kernel, kernel].
void add_convolution(PolicyGraph& graph, const replay::TransitionSpec& transitions,
                     const at::Tensor& weight, const at::Tensor& bias, std::int64_t stride,
                     GraphLayer::Activation activation = GraphLayer::Activation::relu);
void add_vectors(PolicyGraph& graph);
/// A layer without a matrix: it gives as many numbers as it has biases, or else as it takes.
void add_weightless(PolicyGraph& graph, GraphLayer::Kind kind, const at::Tensor& gain = {},
                    const at::Tensor& bias = {},
                    GraphLayer::Activation activation = GraphLayer::Activation::none);

/// Makes the layer that takes states take them as they are, not in units of `moments`
/// (RunningMoments::published()).
void fold_moments(const at::Tensor& moments, LayerTensors& first);
/// The layers behind a picture's encoder, or behind states, residual ones included.
void add_mlp(PolicyGraph& graph, const Mlp& mlp, const std::vector<LayerTensors>& parameters);
/// Bytes enter as x / 255 - 0.5, and the features leave channel by channel: pass the first layer
/// behind it through rows_by_channel().
void add_encoder(PolicyGraph& graph, const replay::TransitionSpec& transitions,
                 const EncoderShape& encoder, const EncoderShape::Tensors& parameters);
/// A weight [features, outputs] whose rows are ordered [height, width, channels] as an encoder
/// gives its features, ordered [channels, height, width].
at::Tensor rows_by_channel(const EncoderShape& encoder, const at::Tensor& weight);

} // namespace troupe::learner
