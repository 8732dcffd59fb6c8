#include "experiments/exporting/header_file.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "experiments/exporting/exported_files.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "learner/policy_graph/graph_runner.hpp"

namespace troupe::experiments {
namespace {

using learner::GraphAction;
using learner::GraphLayer;
using learner::WeightType;

constexpr std::int64_t kColumns = 16; // as in runtime/policy_runtime.hpp

std::int64_t padded(std::int64_t outputs) {
  return (outputs + kColumns - 1) / kColumns * kColumns;
}

std::string text(std::int64_t number) {
  return std::to_string(number);
}

/// Exact.
std::string literal(double number) {
  char made[64];
  std::snprintf(made, sizeof made, "%aF", static_cast<double>(static_cast<float>(number)));
  return made;
}

std::string cpp_string(const std::string& words) {
  std::string made = "\"";
  for (const char c : words) {
    char escaped[8];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      made += std::string("\\") + c;
    else if (byte < 0x20 || c == '?') { // "??" begins a trigraph
      std::snprintf(escaped, sizeof escaped, "\\%03o", byte);
      made += escaped;
    } else
      made += c;
  }
  return made + "\"";
}

/// Writes an array of numbers, a few to a line.
template <class Print>
void array(std::string& out, const std::string& type, const std::string& name, std::size_t count,
           const Print& print) {
  out += "alignas(64) inline constexpr " + type + " " + name + "[] = {";
  for (std::size_t i = 0; i < count; ++i) {
    out += i % 12 == 0 ? "\n    " : " ";
    out += print(i);
    out += ',';
  }
  out += "};\n";
}

void array(std::string& out, const std::string& name, const std::vector<float>& numbers) {
  array(out, "float", name, numbers.size(), [&](std::size_t i) { return literal(numbers[i]); });
}

std::vector<float> with_padding(std::vector<float> numbers) {
  numbers.resize(static_cast<std::size_t>(padded(static_cast<std::int64_t>(numbers.size()))), 0);
  return numbers;
}

/// A layer's weight as [inputs, padded outputs] of any type.
template <class T>
std::vector<T> in_columns(const std::vector<T>& weight, std::size_t outputs) {
  const auto wide = static_cast<std::size_t>(padded(static_cast<std::int64_t>(outputs)));
  std::vector<T> made(weight.size() / outputs * wide, T{});
  for (std::size_t i = 0; i < weight.size(); ++i)
    made[i / outputs * wide + i % outputs] = weight[i];
  return made;
}

/// Weights of a layer under the names w<i>, s<i> (int8 alone), b<i>, g<i>.
void add_numbers(std::string& out, GraphLayer layer, std::size_t number, WeightType type) {
  const std::string i = std::to_string(number);
  const std::size_t outputs = layer.bias.size();
  if (!layer.weight.empty()) {
    std::vector<float> scales;
    if (type == WeightType::int8) { // the numbers of the layer stand for themselves from here on
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

/// The statements of Policy::act(), and the buffers that they need.
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
  /// Members that convolutions need.
  std::string scratch() const {
    return patch_ == 0 ? ""
                       : "  alignas(64) float patch_[" + text(patch_)
                             + "] = {};\n  alignas(64) float row_[" + text(row_) + "] = {};\n";
  }

private:
  const char* x() const { return swapped_ ? "y_" : "x_"; }
  const char* y() const { return swapped_ ? "x_" : "y_"; }
  void line(const std::string& statement) { out_ += "    " + statement + "\n"; }
  void uses(std::int64_t numbers) { widest_ = std::max(widest_, padded(numbers)); }

  /// x[first…] = one array, normalised.
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
  std::int64_t remembered_ = 0;
  bool swapped_ = false;
  bool remembers_choice_ = false;
};

void add_elements(std::string& out, const char* name, const std::vector<ContractElement>& all) {
  out += std::string("inline constexpr troupe_policy::Element ") + name + "[] = {\n";
  for (const ContractElement& element : all)
    out += "    {" + cpp_string(element.name) + ", " + cpp_string(element.unit) + ", "
           + literal(element.minimum) + ", " + literal(element.maximum) + "},\n";
  out += "};\n";
}

void add_contract(std::string& out, const PolicyContract& contract) {
  std::vector<ContractElement> observed;
  for (const ContractArray& array : contract.observations) {
    if (array.elements.empty()) {
      std::string unit = env::element_name(array.spec.type);
      for (const std::int64_t size : array.spec.shape)
        unit += " " + text(size);
      observed.push_back({.name = array.spec.name, .unit = unit});
    }
    observed.insert(observed.end(), array.elements.begin(), array.elements.end());
  }
  add_elements(out, "kObservation", observed);
  add_elements(out, "kAction", contract.actions);
  char period[64];
  std::snprintf(period, sizeof period, "%.17g", contract.control_period_seconds);
  out += "inline constexpr troupe_policy::Contract kContract = {" + cpp_string(contract.task)
         + ", kObservation, " + std::to_string(observed.size()) + ", kAction, "
         + std::to_string(contract.actions.size()) + ", " + std::to_string(contract.history) + ", "
         + period + "};\n";
}

void add_scales(std::string& out, const PolicyContract& contract) {
  for (std::size_t a = 0; a < contract.observations.size(); ++a) {
    const ContractArray& array_ = contract.observations[a];
    if (array_.mean.empty())
      continue;
    const std::string i = std::to_string(a);
    array(out, "float", "mean" + i, array_.mean.size(),
          [&](std::size_t k) { return literal(array_.mean[k]); });
    array(out, "float", "inverse" + i, array_.mean.size(),
          [&](std::size_t k) { return literal(1 / array_.deviation[k]); });
  }
  array(out, "float", "gain", contract.scales.size(),
        [&](std::size_t k) { return literal(contract.scales[k].gain); });
  array(out, "float", "offset", contract.scales.size(),
        [&](std::size_t k) { return literal(contract.scales[k].offset); });
}

void replace_all(std::string& in, const std::string& old, const std::string& with) {
  for (std::size_t at = in.find(old); at != std::string::npos; at = in.find(old, at + with.size()))
    in.replace(at, old.size(), with);
}

constexpr const char* kPolicyClass = R"class(
/// The policy behind its contract: observations as the environment has them, actions within its
/// bounds. One thread at a time. Does not allocate, lock or throw. An object of static storage, or
/// a member, rather than a local variable: it is large.
class Policy {
public:
  using Frame = %FRAME%;
  static constexpr int kFrameSize = %FRAME_SIZE%; // numbers or bytes of one frame
  static constexpr int kHistory = %HISTORY%;
  static constexpr int kVectorSize = %VECTORS%; // numbers beside the frames
  static constexpr int kActionSize = %ACTIONS%;

  /// Forgets the episode: before the first step of the next one.
  void reset() {
    remembered_ = 0;
    last_choice_ = 0;
    for (float& number : memory_)
      number = 0.0F;
  }

  /// Of the newest frame; keeps the history itself. False: a number is not finite; nothing changed.
  bool step(const Frame* frame, const float* vectors, float* action) {
    if constexpr (kHistory == 1)
      return act(frame, vectors, action);
    if (!troupe_policy::all_finite(frame, kFrameSize)
        || (kVectorSize > 0 && !troupe_policy::all_finite(vectors, kVectorSize)))
      return false;
    if (remembered_ == 0)
      for (int i = 0; i < kHistory; ++i)
        std::memcpy(history_ + i * kFrameSize, frame, sizeof(Frame) * kFrameSize);
    else {
      std::memmove(history_, history_ + kFrameSize, sizeof(Frame) * (kHistory - 1) * kFrameSize);
      std::memcpy(history_ + (kHistory - 1) * kFrameSize, frame, sizeof(Frame) * kFrameSize);
    }
    remembered_ = 1;
    return act(history_, vectors, action);
  }
  bool step(const Frame* frame, float* action) { return step(frame, nullptr, action); }

  /// Of kHistory frames, oldest first. `vectors` may be null where kVectorSize is 0.
  bool act(const Frame* frames, const float* vectors, float* action) {
    using namespace troupe_policy;
    (void)vectors;
%STATEMENTS%  }

private:
  alignas(64) float x_[%WIDEST%] = {};
  alignas(64) float y_[%WIDEST%] = {};
%SCRATCH%  float memory_[%MEMORY%] = {};
  Frame history_[kHistory > 1 ? kHistory * kFrameSize : 1] = {};
  int last_choice_ = 0; // plus 1
  int remembered_ = 0;
};
)class";

} // namespace

void write_header(const std::filesystem::path& folder, const std::string& name,
                  const learner::PolicyGraph& graph, const PolicyContract& contract,
                  learner::WeightType type) {
  const auto letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), letter)
      || std::isdigit(static_cast<unsigned char>(name[0])))
    throw std::invalid_argument("--namespace '" + name
                                + "' is no name of C++; use letters, digits and _");
  std::string out = "// A policy for " + contract.task + ", trained by " + contract.agent + " for "
                    + text(contract.updates) + " updates and exported by Troupe " + contract.version
                    + ". Weights: " + learner::weight_type_name(type)
                    + ".\n// C++17, no dependency. #include \"policy.hpp\"; " + name
                    + "::Policy acts, " + name
                    + "::kContract says what it takes.\n#pragma once\n\n";
  out += kPolicyRuntime;
  out += "\nnamespace " + name + " {\n\n";
  add_contract(out, contract);
  out += "\nnamespace weights {\n";
  for (std::size_t i = 0; i < graph.layers.size(); ++i)
    add_numbers(out, graph.layers[i], i, type);
  out += "} // namespace weights\n";
  add_scales(out, contract);
  Statements statements(graph, contract, type);
  std::string policy = kPolicyClass;
  replace_all(policy, "%STATEMENTS%", statements.write());
  replace_all(policy, "%FRAME%", graph.picture ? "std::uint8_t" : "float");
  replace_all(policy, "%FRAME_SIZE%", text(graph.inputs / contract.history));
  replace_all(policy, "%HISTORY%", std::to_string(contract.history));
  replace_all(policy, "%VECTORS%", text(graph.vectors));
  replace_all(policy, "%ACTIONS%", text(graph.action_size()));
  replace_all(policy, "%WIDEST%", text(statements.widest()));
  replace_all(policy, "%SCRATCH%", statements.scratch());
  replace_all(policy, "%MEMORY%", text(std::max<std::int64_t>(1, graph.state_size())));
  out += policy + "\n} // namespace " + name + "\n";
  write_text(folder / "policy.hpp", out);
  std::string cmake = kPolicyCMake;
  replace_all(cmake, "%NAME%", name);
  write_text(folder / "CMakeLists.txt", cmake);
  write_text(folder / "parity.cpp", kParityProgram);
}

} // namespace troupe::experiments
