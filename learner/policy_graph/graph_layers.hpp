#pragma once

#include "learner/nn/encoder.hpp"
#include "learner/nn/mlp.hpp"
#include "learner/policy_graph/policy_graph.hpp"
#include "replay/chunks/spec.hpp"

namespace troupe::learner {

/// Returns a graph without layers that takes observations of these transitions.
PolicyGraph graph_of(const replay::TransitionSpec& transitions);

/// Copies the numbers of a float tensor of any device and layout.
std::vector<float> numbers_of(const at::Tensor& tensor);

/// The number of outputs of the last layer, or of the graph's inputs if it has no layers yet.
std::int64_t graph_width(const PolicyGraph& graph);

/// weight: [inputs, outputs]; bias: [outputs].
void add_linear(PolicyGraph& graph, const at::Tensor& weight, const at::Tensor& bias,
                GraphLayer::Activation activation = GraphLayer::Activation::none);
/// weight: [outputs, inputs, kernel, kernel].
void add_convolution(PolicyGraph& graph, const replay::TransitionSpec& transitions,
                     const at::Tensor& weight, const at::Tensor& bias, std::int64_t stride,
                     GraphLayer::Activation activation = GraphLayer::Activation::relu);
void add_vectors(PolicyGraph& graph);
/// Adds a layer without a weight matrix. It has as many outputs as biases, or as many as inputs if
/// it has no bias.
void add_weightless(PolicyGraph& graph, GraphLayer::Kind kind, const at::Tensor& gain = {},
                    const at::Tensor& bias = {},
                    GraphLayer::Activation activation = GraphLayer::Activation::none);

/// Adds layers that normalise states by `moments` (RunningMoments::published()). They subtract
/// before they multiply, as acting does: a product of the state and a large inverse deviation would
/// cancel against the mean and lose its digits.
void add_moments(PolicyGraph& graph, const at::Tensor& moments);
/// Adds the layers of an MLP, including residual ones. It follows a picture's encoder or takes
/// states.
void add_mlp(PolicyGraph& graph, const Mlp& mlp, const std::vector<LayerTensors>& parameters);
/// Adds an encoder. Its input bytes are scaled to x / 255 - 0.5, and its output features are
/// ordered channel by channel. Pass the weight of the next layer through rows_by_channel().
void add_encoder(PolicyGraph& graph, const replay::TransitionSpec& transitions,
                 const EncoderShape& encoder, const EncoderShape::Tensors& parameters);
/// Reorders the rows of a weight [features, outputs] from an encoder's order, [height, width,
/// channels], to [channels, height, width].
at::Tensor rows_by_channel(const EncoderShape& encoder, const at::Tensor& weight);

} // namespace troupe::learner
