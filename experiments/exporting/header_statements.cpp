#include "experiments/exporting/header_statements.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "experiments/exporting/header_text.hpp"
#include "learner/policy_graph/graph_runner.hpp"

namespace troupe::experiments {
namespace {

using learner::GraphAction;
using learner::GraphLayer;
using learner::WeightType;

std::vector<float> with_padding(std::vector<float> numbers) {
  numbers.resize(static_cast<std::size_t>(padded(static_cast<std::int64_t>(numbers.size()))), 0);
  return numbers;
}

/// Transposes a layer's weight of any type to [inputs, padded outputs].
template <class T>
std::vector<T> in_columns(const std::vector<T>& weight, std::size_t outputs) {
  const auto wide = static_cast<std::size_t>(padded(static_cast<std::int64_t>(outputs)));
  std::vector<T> made(weight.size() / outputs * wide, T{});
  for (std::size_t i = 0; i < weight.size(); ++i)
    made[i / outputs * wide + i % outputs] = weight[i];
  return made;
}

const char* activation_text(GraphLayer::Activation activation) {
  switch (activation) {
  case GraphLayer::Activation::none:
    return "Activation::none";
  case GraphLayer::Activation::relu:
    return "Activation::relu";
  case GraphLayer::Activation::elu:
    return "Activation::elu";
  case GraphLayer::Activation::tanh:
    return "Activation::tanh";
  }
  throw std::logic_error("no such activation");
}

/// Generates the statements of Policy::act() and the buffers that they need.
class Statements {
public:
  Statements(const learner::PolicyGraph& graph, const PolicyContract& contract, WeightType type)
      : graph_(graph), contract_(contract), type_(type) {}

  std::string write() {
    enter();
    for (std::size_t i = 0; i < graph_.layers.size(); ++i)
      add(graph_.layers[i], i);
    act();
    return out_;
  }
  std::int64_t widest() const { return widest_; }
  /// Declarations of members that convolutions and residual layers need.
  std::string scratch() const {
    return (patch_ == 0 ? ""
                        : "  alignas(64) float patch_[" + text(patch_)
                              + "] = {};\n  alignas(64) float row_[" + text(row_) + "] = {};\n")
           + (kept_ == 0 ? "" : "  alignas(64) float kept_[" + text(kept_) + "] = {};\n");
  }

private:
  const char* x() const { return swapped_ ? "y_" : "x_"; }
  const char* y() const { return swapped_ ? "x_" : "y_"; }
  void line(const std::string& statement) { out_ += "    " + statement + "\n"; }
  void uses(std::int64_t numbers) { widest_ = std::max(widest_, padded(numbers)); }

  /// Generates x[first…] = one normalised array.
  void copy(const ContractArray& array, const std::string& from, const std::string& numbers,
            std::int64_t first, std::int64_t count) {
    const std::string to = std::string(x()) + "[" + text(first) + " + i]";
    line("for (int i = 0; i < " + text(count) + "; ++i)");
    if (array.mean.empty()) {
      line("  " + to + " = " + from + "[i];");
      return;
    }
    const auto size = static_cast<std::int64_t>(array.mean.size());
    const std::string k = size == count ? "[i]" : "[i % " + text(size) + "]";
    const std::string clip = literal(contract_.normalisation_clip);
    line("  " + to + " = limited((" + from + "[i] - mean" + numbers + k + ") * inverse" + numbers
         + k + ", -" + clip + ", " + clip + ");");
  }

  void enter() {
    uses(graph_.inputs);
    if (!graph_.picture) {
      line("if (!all_finite(frames, " + text(graph_.inputs) + "))");
      line("  return false;");
      copy(contract_.observations[0], "frames", "0", 0, graph_.inputs);
    }
    if (graph_.vectors > 0) {
      line("if (!all_finite(vectors, " + text(graph_.vectors) + "))");
      line("  return false;");
    }
    if (!graph_.picture)
      return;
    const auto& in = graph_.layers.front().in;
    line("enter_picture<" + text(in.channels) + ", " + text(in.height * in.width) + ">(frames, "
         + literal(graph_.picture_scale) + ", " + literal(graph_.picture_offset) + ", " + x()
         + ");");
  }

  std::string weights(std::size_t number) const {
    const std::string i = std::to_string(number);
    return "weights::w" + i + ", " + (type_ == WeightType::int8 ? "weights::s" + i : "nullptr")
           + ", weights::b" + i;
  }
  void activate(const GraphLayer& layer) {
    if (layer.activation != GraphLayer::Activation::none)
      line(std::string("activate<") + activation_text(layer.activation) + ", "
           + text(padded(layer.outputs)) + ">(" + x() + ");");
  }

  void add(const GraphLayer& layer, std::size_t i) {
    uses(layer.outputs);
    switch (layer.kind) {
    case GraphLayer::Kind::convolution:
      convolve(layer, i);
      return;
    case GraphLayer::Kind::vectors: {
      std::int64_t first = layer.inputs;
      std::int64_t from = 0;
      for (std::size_t a = 1; a < contract_.observations.size(); ++a) {
        const ContractArray& array = contract_.observations[a];
        const auto count = static_cast<std::int64_t>(array.spec.elements());
        copy(array, "(vectors + " + text(from) + ")", std::to_string(a), first, count);
        first += count;
        from += count;
      }
      return;
    }
    case GraphLayer::Kind::last_choice:
      line("for (int i = 0; i < " + text(layer.outputs - layer.inputs) + "; ++i)");
      line(std::string("  ") + x() + "[" + text(layer.inputs)
           + " + i] = i == last_choice_ ? 1.0F : 0.0F;");
      remembers_choice_ = true;
      return;
    case GraphLayer::Kind::linear:
      line("linear<" + text(layer.inputs) + ", " + text(layer.outputs) + ">(" + weights(i) + ", "
           + x() + ", " + y() + ");");
      swapped_ = !swapped_;
      activate(layer);
      return;
    case GraphLayer::Kind::layer_norm:
      line("layer_norm<" + text(layer.outputs) + ">(weights::g" + std::to_string(i) + ", weights::b"
           + std::to_string(i) + ", " + x() + ");");
      activate(layer);
      return;
    case GraphLayer::Kind::affine:
      line("affine<" + text(layer.inputs) + ", " + text(layer.outputs) + ">(weights::g"
           + std::to_string(i) + ", weights::b" + std::to_string(i) + ", " + x() + ");");
      return;
    case GraphLayer::Kind::unit_length:
      line("unit_length<" + text(layer.outputs) + ">(" + x() + ");");
      return;
    case GraphLayer::Kind::keep:
      kept_ = std::max(kept_, layer.outputs);
      line(std::string("std::memcpy(kept_, ") + x() + ", " + text(layer.outputs)
           + " * sizeof(float));");
      return;
    case GraphLayer::Kind::add:
      line("add_kept<" + text(layer.outputs) + ">(kept_, "
           + (layer.gain.empty() ? "nullptr" : "weights::g" + std::to_string(i)) + ", " + x()
           + ");");
      return;
    case GraphLayer::Kind::lstm:
      uses(layer.inputs + layer.outputs);
      uses(4 * layer.outputs);
      line("lstm<" + text(layer.inputs) + ", " + text(layer.outputs) + ">(" + weights(i) + ", "
           + x() + ", " + y() + ", memory_ + " + text(remembered_) + ");");
      remembered_ += 2 * layer.outputs;
      return;
    }
  }

  void convolve(const GraphLayer& layer, std::size_t i) {
    line("convolution<" + text(layer.in.channels) + ", " + text(layer.in.height) + ", "
         + text(layer.in.width) + ", " + text(layer.out.channels) + ", " + text(layer.kernel) + ", "
         + text(layer.stride) + ", " + activation_text(layer.activation) + ">(" + weights(i) + ", "
         + x() + ", " + y() + ", patch_, row_);");
    patch_ = std::max(patch_, layer.kernel * layer.kernel * layer.in.channels);
    row_ = std::max(row_, padded(layer.out.channels));
    swapped_ = !swapped_;
    const bool last =
        i + 1 == graph_.layers.size() || graph_.layers[i + 1].kind != GraphLayer::Kind::convolution;
    if (!last)
      return;
    line("by_channel<" + text(layer.out.channels) + ", " + text(layer.out.height * layer.out.width)
         + ">(" + x() + ", " + y() + ");");
    swapped_ = !swapped_;
  }

  void act() {
    std::int64_t from = 0;
    std::size_t number = 0;
    for (const GraphAction& action : graph_.actions) {
      const std::string place = std::string(x()) + " + " + text(from);
      const std::string to = "action[" + std::to_string(number) + "]";
      if (action.kind == GraphAction::Kind::choice)
        line(to + " = static_cast<float>(largest(" + place + ", " + text(action.choices) + "));");
      if (action.kind == GraphAction::Kind::distribution)
        line(to + " = static_cast<float>(largest_mean(" + place + ", " + text(action.choices) + ", "
             + text(action.atoms) + ", " + literal(action.minimum) + ", " + literal(action.maximum)
             + "));");
      if (action.choices == 0) {
        const std::string each = std::string(x()) + "[" + text(from) + " + i]";
        if (action.kind == GraphAction::Kind::tanh)
          line("activate<Activation::tanh, "
               + text(graph_.actions.size() == 1 ? padded(action.count) : action.count) + ">("
               + place + ");");
        const std::string k = "[" + std::to_string(number) + " + i]";
        const std::string limit = literal(contract_.scales[number].limit);
        line("for (int i = 0; i < " + text(action.count) + "; ++i)");
        line("  action" + k + " = offset" + k + " + gain" + k + " * limited(" + each + ", -" + limit
             + ", " + limit + ");");
      }
      from += action.outputs();
      number += static_cast<std::size_t>(action.count);
    }
    if (remembers_choice_)
      line("last_choice_ = static_cast<int>(action[0]) + 1;");
    line("return true;");
  }

  const learner::PolicyGraph& graph_;
  const PolicyContract& contract_;
  WeightType type_;
  std::string out_;
  std::int64_t widest_ = kColumns;
  std::int64_t patch_ = 0;
  std::int64_t row_ = 0;
  std::int64_t kept_ = 0;
  std::int64_t remembered_ = 0;
  bool swapped_ = false;
  bool remembers_choice_ = false;
};

} // namespace

void add_layer_numbers(std::string& out, GraphLayer layer, std::size_t number, WeightType type) {
  const std::string i = std::to_string(number);
  const std::size_t outputs = layer.bias.size();
  if (!layer.weight.empty()) {
    std::vector<float> scales;
    if (type == WeightType::int8) { // from here on the weights are the int8 values
      const learner::Int8Weight rounded = learner::int8_weight(layer);
      scales = rounded.scales;
      std::copy(rounded.values.begin(), rounded.values.end(), layer.weight.begin());
    }
    const bool convolves = layer.kind == GraphLayer::Kind::convolution;
    const auto columns =
        in_columns(convolves ? learner::patch_weight(layer) : layer.weight, outputs);
    if (type == WeightType::float32)
      array(out, "w" + i, columns);
    else if (type == WeightType::bfloat16)
      array(out, "std::uint16_t", "w" + i, columns.size(),
            [&](std::size_t k) { return std::to_string(learner::bfloat16_bits(columns[k])); });
    else {
      array(out, "std::int8_t", "w" + i, columns.size(),
            [&](std::size_t k) { return std::to_string(static_cast<int>(columns[k])); });
      array(out, "s" + i, with_padding(scales));
    }
  }
  if (!layer.bias.empty())
    array(out, "b" + i, with_padding(layer.bias));
  if (!layer.gain.empty())
    array(out, "g" + i, layer.gain);
}

HeaderStatements header_statements(const learner::PolicyGraph& graph,
                                   const PolicyContract& contract, WeightType type) {
  Statements statements(graph, contract, type);
  std::string text = statements.write();
  return {std::move(text), statements.scratch(), statements.widest()};
}

} // namespace troupe::experiments
