#include "learner/policy_graph/graph_runner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::learner {
namespace {

using Kind = GraphLayer::Kind;
constexpr float kNormEpsilon = 1e-5F; // the default of PyTorch's LayerNorm
constexpr double kLeastLength = 1e-8;

void activate(GraphLayer::Activation activation, std::vector<float>& x) {
  for (float& number : x)
    switch (activation) {
    case GraphLayer::Activation::none:
      break;
    case GraphLayer::Activation::relu:
      number = std::max(number, 0.F);
      break;
    case GraphLayer::Activation::elu:
      number = number > 0 ? number : std::expm1(number);
      break;
    case GraphLayer::Activation::tanh:
      number = std::tanh(number);
      break;
    }
}

/// y += x weight, with weight [x, y].
void add_product(std::span<const float> x, const float* weight, std::span<float> y) {
  for (const float number : x) {
    for (std::size_t j = 0; j < y.size(); ++j)
      y[j] += number * weight[j];
    weight += y.size();
  }
}

void require(bool holds, std::size_t layer, const std::string& what) {
  if (!holds)
    throw std::invalid_argument("layer " + std::to_string(layer) + " of the policy " + what);
}

std::size_t weights_of(const GraphLayer& layer) {
  const auto in = static_cast<std::size_t>(layer.inputs);
  const auto out = static_cast<std::size_t>(layer.outputs);
  switch (layer.kind) {
  case Kind::convolution:
    return static_cast<std::size_t>(layer.out.channels * layer.in.channels * layer.kernel
                                    * layer.kernel);
  case Kind::linear:
    return in * out;
  case Kind::lstm:
    return (in + out) * 4 * out;
  default:
    return 0;
  }
}

double expectation(const float* logits, const GraphAction& action) {
  const double greatest = *std::max_element(logits, logits + action.atoms);
  double weights = 0;
  double sum = 0;
  for (std::int64_t k = 0; k < action.atoms; ++k) {
    const double weight = std::exp(logits[k] - greatest);
    weights += weight;
    sum += weight
           * (action.minimum
              + (action.maximum - action.minimum) * static_cast<double>(k)
                    / static_cast<double>(action.atoms - 1));
  }
  return sum / weights;
}

} // namespace

std::vector<float> patch_weight(const GraphLayer& layer) {
  std::vector<float> made(layer.weight.size());
  const std::int64_t outputs = layer.out.channels;
  const std::int64_t channels = layer.in.channels;
  const std::int64_t area = layer.kernel * layer.kernel;
  for (std::int64_t o = 0; o < outputs; ++o)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t k = 0; k < area; ++k)
        made[static_cast<std::size_t>((k * channels + c) * outputs + o)] =
            layer.weight[static_cast<std::size_t>((o * channels + c) * area + k)];
  return made;
}

GraphRunner::GraphRunner(PolicyGraph graph) : graph_(std::move(graph)) {
  std::int64_t width = graph_.inputs;
  std::int64_t widest = width;
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < graph_.layers.size(); ++i) {
    const GraphLayer& layer = graph_.layers[i];
    require(layer.inputs == width, i,
            "takes " + std::to_string(layer.inputs) + " numbers behind " + std::to_string(width));
    require(layer.weight.size() == weights_of(layer), i,
            "has " + std::to_string(layer.weight.size()) + " weights, not "
                + std::to_string(weights_of(layer)));
    patches_.push_back(layer.kind == Kind::convolution ? patch_weight(layer)
                                                       : std::vector<float>());
    if (layer.kind == Kind::keep)
      kept = width;
    require(layer.kind != Kind::add || width == kept, i,
            "adds " + std::to_string(kept) + " kept numbers to " + std::to_string(width));
    width = layer.outputs;
    widest = std::max({widest, width, layer.kind == Kind::lstm ? 4 * width : 0,
                       layer.kind == Kind::lstm ? layer.inputs + width : 0});
  }
  std::int64_t taken = 0;
  for (const GraphAction& action : graph_.actions)
    taken += action.outputs();
  require(taken == width, graph_.layers.size() - 1,
          "gives " + std::to_string(width) + " numbers for actions that take "
              + std::to_string(taken));
  x_.reserve(static_cast<std::size_t>(widest));
  y_.reserve(static_cast<std::size_t>(widest));
  kept_.reserve(static_cast<std::size_t>(widest));
}

void GraphRunner::enter(std::span<const std::byte> frames) {
  x_.resize(static_cast<std::size_t>(graph_.inputs));
  if (!graph_.picture) {
    std::memcpy(x_.data(), frames.data(), frames.size());
    return;
  }
  const GraphLayer::Picture in = graph_.layers.front().in;
  const bool convolves = graph_.layers.front().kind == Kind::convolution;
  const std::int64_t channels = convolves ? in.channels : 1;
  const std::int64_t plane = graph_.inputs / channels;
  std::size_t to = 0; // [height, width, channels]
  for (std::int64_t pixel = 0; pixel < plane; ++pixel)
    for (std::int64_t c = 0; c < channels; ++c)
      x_[to++] = static_cast<float>(
          static_cast<double>(frames[static_cast<std::size_t>(c * plane + pixel)])
              * graph_.picture_scale
          + graph_.picture_offset);
}

void GraphRunner::convolve(const GraphLayer& layer, const std::vector<float>& weight) {
  const auto row = static_cast<std::size_t>(layer.in.width * layer.in.channels);
  const auto patch_row = static_cast<std::size_t>(layer.kernel * layer.in.channels);
  const auto outputs = static_cast<std::size_t>(layer.out.channels);
  y_.resize(static_cast<std::size_t>(layer.outputs));
  float* to = y_.data();
  for (std::int64_t v = 0; v < layer.out.height; ++v)
    for (std::int64_t u = 0; u < layer.out.width; ++u, to += outputs) {
      std::copy(layer.bias.begin(), layer.bias.end(), to);
      for (std::int64_t k = 0; k < layer.kernel; ++k) {
        const float* from = x_.data() + static_cast<std::size_t>(v * layer.stride + k) * row
                            + static_cast<std::size_t>(u * layer.stride * layer.in.channels);
        add_product({from, patch_row},
                    weight.data() + static_cast<std::size_t>(k) * patch_row * outputs,
                    {to, outputs});
      }
    }
  std::swap(x_, y_);
}

void GraphRunner::multiply(const GraphLayer& layer) {
  y_.assign(layer.bias.begin(), layer.bias.end());
  add_product(x_, layer.weight.data(), y_);
  std::swap(x_, y_);
}

void GraphRunner::remember(const GraphLayer& layer, std::span<float> state) {
  const auto size = static_cast<std::size_t>(layer.outputs);
  const auto hidden = state.first(size);
  const auto cell = state.subspan(size, size);
  x_.insert(x_.end(), hidden.begin(), hidden.end());
  multiply(layer);
  const auto sigmoid = [](float x) { return 1 / (1 + std::exp(-x)); };
  for (std::size_t i = 0; i < size; ++i) {
    cell[i] = sigmoid(x_[size + i]) * cell[i] + sigmoid(x_[i]) * std::tanh(x_[3 * size + i]);
    hidden[i] = sigmoid(x_[2 * size + i]) * std::tanh(cell[i]);
  }
  x_.assign(hidden.begin(), hidden.end());
}

void GraphRunner::normalise(const GraphLayer& layer) {
  const auto count = static_cast<double>(x_.size());
  double mean = 0;
  for (const float number : x_)
    mean += number / count;
  double variance = 0;
  for (const float number : x_)
    variance += (number - mean) * (number - mean) / count;
  const double inverse = 1 / std::sqrt(variance + kNormEpsilon);
  for (std::size_t i = 0; i < x_.size(); ++i)
    x_[i] = static_cast<float>((x_[i] - mean) * inverse) * layer.gain[i] + layer.bias[i];
}

void GraphRunner::scale(const GraphLayer& layer) {
  x_.resize(layer.bias.size(), 0);
  for (std::size_t i = 0; i < x_.size(); ++i)
    x_[i] = (i < layer.gain.size() ? x_[i] * layer.gain[i] : 0) + layer.bias[i];
}

void GraphRunner::shorten() {
  double squares = 0;
  for (const float number : x_)
    squares += static_cast<double>(number) * number;
  const double inverse = 1 / std::max(std::sqrt(squares), kLeastLength);
  for (float& number : x_)
    number = static_cast<float>(number * inverse);
}

void GraphRunner::add_kept(const GraphLayer& layer) {
  for (std::size_t i = 0; i < x_.size(); ++i)
    x_[i] = kept_[i] + (layer.gain.empty() ? x_[i] : layer.gain[i] * (x_[i] - kept_[i]));
}

void GraphRunner::choose(std::span<float> action) const {
  const float* from = x_.data();
  float* to = action.data();
  for (const GraphAction& part : graph_.actions) {
    for (std::int64_t k = 0; part.choices == 0 && k < part.count; ++k)
      to[k] = part.kind == GraphAction::Kind::tanh ? std::tanh(from[k])
                                                   : std::clamp(from[k], -1.F, 1.F);
    if (part.kind == GraphAction::Kind::choice)
      *to = static_cast<float>(std::max_element(from, from + part.choices) - from);
    if (part.kind == GraphAction::Kind::distribution) {
      double best = expectation(from, part);
      *to = 0;
      for (std::int64_t k = 1; k < part.choices; ++k)
        if (const double value = expectation(from + k * part.atoms, part); value > best) {
          best = value;
          *to = static_cast<float>(k);
        }
    }
    from += part.outputs();
    to += part.count;
  }
}

double GraphRunner::choice_margin() const {
  double margin = std::numeric_limits<double>::infinity();
  const float* from = x_.data();
  for (const GraphAction& part : graph_.actions) {
    const bool expects = part.kind == GraphAction::Kind::distribution;
    double best = -std::numeric_limits<double>::infinity();
    double next = best;
    double largest = expects ? std::max(std::abs(part.minimum), std::abs(part.maximum)) : 0;
    for (std::int64_t k = 0; k < part.choices; ++k) {
      const double value = expects ? expectation(from + k * part.atoms, part) : from[k];
      largest = std::max(largest, std::abs(value));
      next = std::max(next, std::min(best, value));
      best = std::max(best, value);
    }
    if (part.choices > 1)
      margin = std::min(margin, largest > 0 ? (best - next) / largest : 0);
    from += part.outputs();
  }
  return margin;
}

void GraphRunner::act(std::span<const std::byte> frames, std::span<const float> vectors,
                      std::span<float> state, std::span<float> action) {
  const auto wanted =
      static_cast<std::size_t>(graph_.inputs) * (graph_.picture ? 1 : sizeof(float));
  if (frames.size() != wanted || static_cast<std::int64_t>(vectors.size()) != graph_.vectors
      || static_cast<std::int64_t>(state.size()) != graph_.state_size()
      || static_cast<std::int64_t>(action.size()) != graph_.action_size())
    throw std::invalid_argument(
        "the policy takes " + std::to_string(wanted) + " bytes of frames, "
        + std::to_string(graph_.vectors) + " numbers beside them and "
        + std::to_string(graph_.state_size()) + " of state, not " + std::to_string(frames.size())
        + ", " + std::to_string(vectors.size()) + " and " + std::to_string(state.size()));
  enter(frames);
  bool chooses = false;
  for (std::size_t i = 0; i < graph_.layers.size(); ++i) {
    const GraphLayer& layer = graph_.layers[i];
    switch (layer.kind) {
    case Kind::convolution:
      convolve(layer, patches_[i]);
      break;
    case Kind::vectors:
      x_.insert(x_.end(), vectors.begin(), vectors.end());
      break;
    case Kind::last_choice:
      chooses = true;
      x_.resize(static_cast<std::size_t>(layer.outputs), 0);
      x_[static_cast<std::size_t>(layer.inputs) + static_cast<std::size_t>(state.back())] = 1;
      break;
    case Kind::linear:
      multiply(layer);
      break;
    case Kind::layer_norm:
      normalise(layer);
      break;
    case Kind::affine:
      scale(layer);
      break;
    case Kind::unit_length:
      shorten();
      break;
    case Kind::keep:
      kept_ = x_;
      break;
    case Kind::add:
      add_kept(layer);
      break;
    case Kind::lstm:
      remember(layer, state);
      break;
    }
    activate(layer.activation, x_);
    const bool last =
        layer.kind == Kind::convolution
        && (i + 1 == graph_.layers.size() || graph_.layers[i + 1].kind != Kind::convolution);
    if (last) { // reorder to [channels, height, width]
      const std::int64_t plane = layer.out.height * layer.out.width;
      y_.resize(x_.size());
      for (std::int64_t pixel = 0; pixel < plane; ++pixel)
        for (std::int64_t c = 0; c < layer.out.channels; ++c)
          y_[static_cast<std::size_t>(c * plane + pixel)] =
              x_[static_cast<std::size_t>(pixel * layer.out.channels + c)];
      std::swap(x_, y_);
    }
  }
  choose(action);
  if (chooses)
    state.back() = action.front() + 1;
}

} // namespace troupe::learner
