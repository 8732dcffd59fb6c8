#include "learner/agents/parts/layers.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <torch/types.h>

#include "learner/nn/activation_probe.hpp"
#include "learner/policy_graph/graph_layers.hpp"

namespace troupe::learner {
namespace {

constexpr double kInitialNoise = 0.5; // of noisy layers, divided by sqrt(inputs)

struct ConvolutionSize {
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t channels;
};

std::vector<ConvolutionSize> sizes_of(const std::string& encoder) {
  if (encoder == "minatar")
    return {{3, 1, 16}};
  if (encoder == "nature")
    return {{8, 4, 32}, {4, 2, 64}, {3, 1, 64}};
  throw std::invalid_argument("encoder '" + encoder + "' is unknown; it must be minatar or nature");
}

/// The function f(x) = sign(x) sqrt(|x|) of factorised noise, for random x.
at::Tensor factor(const NoiseSource& noise, std::int64_t size, const at::TensorOptions& options) {
  const at::Tensor drawn = noise(size).to(options);
  return drawn.sign() * drawn.abs().sqrt();
}

} // namespace

Leaves leaves_of(const ParameterLayout& layout, const at::Tensor& flat,
                 const at::Tensor& gradient) {
  Leaves leaves;
  for (std::size_t i = 0; i < layout.entries().size(); ++i) {
    at::Tensor leaf = layout.stored_view(flat, i).detach();
    if (gradient.defined()) {
      leaf.set_requires_grad(true);
      leaf.mutable_grad() = layout.stored_view(gradient, i);
    }
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

Linear::Linear(ParameterLayout& layout, const std::string& name, std::int64_t inputs,
               std::int64_t outputs, bool noisy)
    : inputs_(inputs), outputs_(outputs), noisy_(noisy) {
  first_ = layout.add(name + ".weight", {inputs, outputs}, {1, 0});
  layout.add(name + ".bias", {outputs});
  if (noisy) {
    layout.add(name + ".weight_noise", {inputs, outputs}, {1, 0});
    layout.add(name + ".bias_noise", {outputs});
  }
}

void Linear::initialise(const ParameterLayout& layout, const at::Tensor& flat,
                        at::Generator& generator) const {
  const double bound = 1 / std::sqrt(static_cast<double>(inputs_));
  for (std::size_t i = first_; i < first_ + 2; ++i)
    layout.stored_view(flat, i).uniform_(-bound, bound, generator);
  for (std::size_t i = first_ + 2; noisy_ && i < first_ + 4; ++i)
    layout.stored_view(flat, i).fill_(kInitialNoise * bound);
}

void Linear::initialise_orthogonal(const ParameterLayout& layout, const at::Tensor& flat,
                                   at::Generator& generator, double gain) const {
  orthogonal(layout.stored_view(flat, first_), gain, generator);
  layout.stored_view(flat, first_ + 1).zero_();
}

at::Tensor Linear::forward(const Leaves& leaves, const at::Tensor& x,
                           const NoiseSource* noise) const {
  const at::Tensor& weight = leaves[first_];
  const at::Tensor& bias = leaves[first_ + 1];
  if (ActivationProbe* const probe = ActivationProbe::active())
    probe->see_features(weight, x);
  if (!noisy_ || noise == nullptr)
    return at::addmm(bias, x, weight);
  const at::Tensor of_inputs = factor(*noise, inputs_, x.options());
  const at::Tensor of_outputs = factor(*noise, outputs_, x.options());
  return at::addmm(bias + leaves[first_ + 3] * of_outputs, x,
                   weight + leaves[first_ + 2] * at::outer(of_inputs, of_outputs));
}

Torso::Torso(ParameterLayout& layout, const std::string& agent,
             const replay::TransitionSpec& transitions, const TorsoOptions& options)
    : tanh_(options.tanh) {
  const std::string& encoder = options.encoder;
  const env::ArraySpec observation = transitions.observation();
  const auto& shape = observation.shape;
  const bool picture = observation.type == env::ElementType::uint8 && shape.size() == 3;
  if (!picture && !(observation.type == env::ElementType::float32 && shape.size() == 1))
    throw std::invalid_argument("observation '" + observation.name + "' is "
                                + env::element_name(observation.type) + " with "
                                + std::to_string(shape.size()) + " dimensions; " + agent
                                + " takes uint8 [channels, height, width] or float32 [n]");
  features_ = static_cast<std::int64_t>(observation.elements());
  if (picture) {
    std::int64_t channels = shape[0];
    std::int64_t height = shape[1];
    std::int64_t width = shape[2];
    for (const ConvolutionSize& size : sizes_of(encoder)) {
      const std::string name = options.name + ".conv" + std::to_string(convolutions_.size());
      if (height < size.kernel || width < size.kernel)
        throw std::invalid_argument(
            "observation '" + observation.name + "' is " + std::to_string(shape[1]) + " x "
            + std::to_string(shape[2]) + " pixels; " + agent + ".encoder \"" + encoder
            + "\" takes at least " + std::to_string(least_picture(encoder)));
      convolutions_.push_back(
          {layout.add(name + ".weight", {size.channels, channels, size.kernel, size.kernel}),
           size.stride});
      layout.add(name + ".bias", {size.channels});
      channels = size.channels;
      height = (height - size.kernel) / size.stride + 1;
      width = (width - size.kernel) / size.stride + 1;
    }
    features_ = channels * height * width;
  }
  features_ += static_cast<std::int64_t>(transitions.vector_elements());
  for (const std::int64_t size : options.widths) {
    layers_.emplace_back(layout, options.name + ".layer" + std::to_string(layers_.size()),
                         features_, size);
    features_ = size;
  }
}

void Torso::initialise(const ParameterLayout& layout, const at::Tensor& flat,
                       at::Generator& generator) const {
  for (const Convolution& convolution : convolutions_) {
    const at::Tensor weight = layout.stored_view(flat, convolution.first);
    const auto inputs = static_cast<double>(weight.numel() / weight.size(0));
    for (const std::size_t i : {convolution.first, convolution.first + 1})
      layout.stored_view(flat, i).uniform_(-1 / std::sqrt(inputs), 1 / std::sqrt(inputs),
                                           generator);
  }
  for (const Linear& layer : layers_)
    layer.initialise(layout, flat, generator);
}

void Torso::initialise_orthogonal(const ParameterLayout& layout, const at::Tensor& flat,
                                  at::Generator& generator) const {
  const double gain = std::sqrt(2); // compensates for ReLU, which sets half of the inputs to 0
  for (const Convolution& convolution : convolutions_) {
    orthogonal(layout.stored_view(flat, convolution.first).flatten(1), gain, generator);
    layout.stored_view(flat, convolution.first + 1).zero_();
  }
  for (const Linear& layer : layers_)
    layer.initialise_orthogonal(layout, flat, generator, gain);
}

at::Tensor Torso::forward(const Leaves& leaves, const Observed& observation) const {
  ActivationProbe* const probe = ActivationProbe::active();
  at::Tensor x = observation.frames;
  if (!convolutions_.empty()) {
    x = x.to(leaves.front().scalar_type()) / 255;
    for (const Convolution& convolution : convolutions_) {
      x = at::relu(at::conv2d(x, leaves[convolution.first], leaves[convolution.first + 1],
                              convolution.stride));
      if (probe != nullptr)
        probe->see_units(leaves[convolution.first], x);
    }
    x = x.flatten(1);
  }
  if (observation.vectors.defined())
    x = at::cat({x, observation.vectors.to(x.scalar_type())}, 1);
  for (const Linear& layer : layers_) {
    x = layer.forward(leaves, x);
    x = tanh_ ? at::tanh(x) : at::relu(x);
    if (probe != nullptr)
      probe->see_units(layer.weight(leaves), x);
  }
  return x;
}

void Torso::describe(const Leaves& leaves, const replay::TransitionSpec& transitions,
                     PolicyGraph& graph) const {
  for (const Convolution& convolution : convolutions_)
    add_convolution(graph, transitions, leaves[convolution.first], leaves[convolution.first + 1],
                    convolution.stride);
  add_vectors(graph);
  for (const Linear& layer : layers_)
    add_linear(graph, layer.weight(leaves), layer.bias(leaves),
               tanh_ ? GraphLayer::Activation::tanh : GraphLayer::Activation::relu);
}

std::int64_t least_picture(const std::string& encoder) {
  std::int64_t least = 1;
  const auto sizes = sizes_of(encoder);
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size)
    least = (least - 1) * size->stride + size->kernel;
  return least;
}

std::vector<OptionProblem> small_pictures(const std::string& agent, const std::string& encoder,
                                          std::int64_t least,
                                          const AgentSetting::Picture& picture) {
  std::vector<OptionProblem> found;
  for (const auto& [key, size] : {std::pair{"environment.pixels.height", picture.height},
                                  {"environment.pixels.width", picture.width}})
    if (size < least)
      found.push_back({key, "is " + std::to_string(size) + "; it must be at least "
                                + std::to_string(least) + " for " + agent + ".encoder \"" + encoder
                                + "\""});
  return found;
}

std::vector<OptionProblem> small_pictures(const std::string& agent, const std::string& encoder,
                                          const AgentSetting& setting) {
  if (!setting.picture)
    return {};
  return small_pictures(agent, encoder, least_picture(encoder), *setting.picture);
}

} // namespace troupe::learner
