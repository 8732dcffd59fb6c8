#include "experiments/exporting/onnx_file.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/run_folder/run_folder.hpp"
#include "onnx/onnx.pb.h"

namespace troupe::experiments {
namespace {

using learner::GraphAction;
using learner::GraphLayer;
using Shape = std::vector<std::int64_t>;

constexpr std::int64_t kOpset = 17; // the first opset with LayerNormalization
constexpr std::int64_t kIrVersion = 8;

/// Adds nodes to a graph and names their outputs.
class Nodes {
public:
  explicit Nodes(onnx::GraphProto& graph) : graph_(graph) {}

  onnx::NodeProto& add(const std::string& type, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(type);
    node.set_name(type + "_" + std::to_string(graph_.node_size()));
    for (const std::string& name : inputs)
      node.add_input(name);
    for (const std::string& name : outputs)
      node.add_output(name);
    return node;
  }
  /// Returns the name of the node's only output.
  std::string add(const std::string& type, const std::vector<std::string>& inputs) {
    std::string name = "x" + std::to_string(++names_);
    add(type, inputs, {name});
    return name;
  }
  std::string add(const std::string& type, const std::vector<std::string>& inputs,
                  const std::string& attribute, std::int64_t value) {
    std::string name = add(type, inputs);
    set(attribute, value);
    return name;
  }
  /// Sets an attribute of the last node.
  void set(const std::string& name, std::int64_t value) {
    attribute(name, onnx::AttributeProto::INT).set_i(value);
  }
  void set(const std::string& name, float value) {
    attribute(name, onnx::AttributeProto::FLOAT).set_f(value);
  }
  void set(const std::string& name, const Shape& values) {
    onnx::AttributeProto& made = attribute(name, onnx::AttributeProto::INTS);
    made.mutable_ints()->Add(values.begin(), values.end());
  }

  std::string constant(const std::string& label, const std::vector<float>& numbers,
                       const Shape& shape) {
    onnx::TensorProto& made = tensor(label, shape, onnx::TensorProto::FLOAT);
    made.set_raw_data(numbers.data(), numbers.size() * sizeof(float));
    return made.name();
  }
  std::string constant(const std::string& label, const Shape& numbers) {
    const Shape shape{static_cast<std::int64_t>(numbers.size())};
    onnx::TensorProto& made = tensor(label, shape, onnx::TensorProto::INT64);
    made.set_raw_data(numbers.data(), numbers.size() * sizeof(std::int64_t));
    return made.name();
  }
  /// Selects columns of a matrix.
  std::string slice(const std::string& x, std::int64_t first, std::int64_t count) {
    return add("Slice", {x, constant("first", {first}), constant("last", {first + count}),
                         constant("axis", Shape{1})});
  }

private:
  onnx::AttributeProto& attribute(const std::string& name,
                                  onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto& made = *graph_.mutable_node(graph_.node_size() - 1)->add_attribute();
    made.set_name(name);
    made.set_type(type);
    return made;
  }
  onnx::TensorProto& tensor(const std::string& label, const Shape& shape, int type) {
    onnx::TensorProto& made = *graph_.add_initializer();
    made.set_name(label + "_" + std::to_string(graph_.initializer_size()));
    made.set_data_type(type);
    made.mutable_dims()->Add(shape.begin(), shape.end());
    return made;
  }

  onnx::GraphProto& graph_;
  int names_ = 0;
};

void describe(onnx::ValueInfoProto& value, const std::string& name, int type, const Shape& shape) {
  value.set_name(name);
  onnx::TypeProto::Tensor& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape()->add_dim()->set_dim_param("batch");
  for (const std::int64_t size : shape)
    tensor.mutable_shape()->add_dim()->set_dim_value(size);
}

std::string activated(Nodes& nodes, const std::string& x, GraphLayer::Activation activation) {
  switch (activation) {
  case GraphLayer::Activation::relu:
    return nodes.add("Relu", {x});
  case GraphLayer::Activation::elu:
    return nodes.add("Elu", {x});
  case GraphLayer::Activation::tanh:
    return nodes.add("Tanh", {x});
  case GraphLayer::Activation::none:
    break;
  }
  return x;
}

std::string clipped(Nodes& nodes, const std::string& x, double limit) {
  const auto most = static_cast<float>(limit);
  return nodes.add("Clip",
                   {x, nodes.constant("least", {-most}, {}), nodes.constant("most", {most}, {})});
}

/// Converts an input to float32 and normalises it.
std::string entered(Nodes& nodes, const ContractArray& array, double clip, int history) {
  if (array.mean.empty())
    return array.spec.name;
  std::vector<float> mean;
  std::vector<float> inverse;
  for (int frame = 0; frame < history; ++frame)
    for (std::size_t i = 0; i < array.mean.size(); ++i) {
      mean.push_back(static_cast<float>(array.mean[i]));
      inverse.push_back(static_cast<float>(1 / array.deviation[i]));
    }
  const Shape shape{static_cast<std::int64_t>(mean.size())};
  const std::string centred =
      nodes.add("Sub", {array.spec.name, nodes.constant("mean", mean, shape)});
  return clipped(nodes, nodes.add("Mul", {centred, nodes.constant("inverse", inverse, shape)}),
                 clip);
}

/// Writes the layers of a graph in order.
class Layers {
public:
  Layers(Nodes& nodes, const learner::PolicyGraph& graph, const PolicyContract& contract)
      : nodes_(nodes), graph_(graph), contract_(contract) {}

  std::string write() {
    const ContractArray& first = contract_.observations.front();
    std::string x = first.spec.name;
    if (graph_.picture) {
      x = nodes_.add("Cast", {x}, "to", onnx::TensorProto::FLOAT);
      x = nodes_.add("Mul", {x, number("scale", graph_.picture_scale)});
      x = nodes_.add("Add", {x, number("offset", graph_.picture_offset)});
    } else
      x = entered(nodes_, first, contract_.normalisation_clip, contract_.history);
    bool picture = graph_.picture;
    for (const GraphLayer& layer : graph_.layers) {
      if (picture && layer.kind != GraphLayer::Kind::convolution) {
        x = nodes_.add("Flatten", {x}, "axis", 1);
        picture = false;
      }
      x = activated(nodes_, behind(layer, x), layer.activation);
    }
    return x;
  }
  /// The policy's memory after the step, in the order of the state. `choice` is [batch, 1].
  std::vector<std::string> memory(const std::string& choice) {
    std::vector<std::string> made = memory_;
    if (remembers_choice_)
      made.push_back(nodes_.add("Add", {choice, number("one", 1)}));
    return made;
  }

private:
  std::string number(const std::string& label, double value) {
    return nodes_.constant(label, {static_cast<float>(value)}, {});
  }
  std::string weight(const GraphLayer& layer) {
    const auto columns = static_cast<std::int64_t>(layer.bias.size());
    if (layer.kind == GraphLayer::Kind::convolution)
      return nodes_.constant("weight", layer.weight,
                             {columns, layer.in.channels, layer.kernel, layer.kernel});
    return nodes_.constant("weight", layer.weight,
                           {static_cast<std::int64_t>(layer.weight.size()) / columns, columns});
  }
  std::string row(const char* name, const std::vector<float>& values) {
    return nodes_.constant(name, values, {static_cast<std::int64_t>(values.size())});
  }

  std::string behind(const GraphLayer& layer, const std::string& x) {
    switch (layer.kind) {
    case GraphLayer::Kind::convolution: {
      std::string y = nodes_.add("Conv", {x, weight(layer), row("bias", layer.bias)});
      nodes_.set("kernel_shape", Shape{layer.kernel, layer.kernel});
      nodes_.set("strides", Shape{layer.stride, layer.stride});
      return y;
    }
    case GraphLayer::Kind::linear:
      return nodes_.add("Gemm", {x, weight(layer), row("bias", layer.bias)});
    case GraphLayer::Kind::vectors: {
      std::vector<std::string> all{x};
      for (std::size_t i = 1; i < contract_.observations.size(); ++i)
        all.push_back(entered(nodes_, contract_.observations[i], contract_.normalisation_clip, 1));
      return nodes_.add("Concat", all, "axis", 1);
    }
    case GraphLayer::Kind::last_choice:
      return nodes_.add("Concat", {x, last_choice(layer.outputs - layer.inputs)}, "axis", 1);
    case GraphLayer::Kind::layer_norm: {
      std::string y =
          nodes_.add("LayerNormalization", {x, row("gain", layer.gain), row("bias", layer.bias)});
      nodes_.set("epsilon", 1e-5F);
      return y;
    }
    case GraphLayer::Kind::affine:
      return affine(layer, x);
    case GraphLayer::Kind::unit_length: {
      const std::string length = nodes_.add("ReduceL2", {x});
      nodes_.set("axes", Shape{1});
      return nodes_.add("Div", {x, nodes_.add("Max", {length, number("least", 1e-8)})});
    }
    case GraphLayer::Kind::keep:
      return kept_ = x;
    case GraphLayer::Kind::add: {
      if (layer.gain.empty())
        return nodes_.add("Add", {kept_, x});
      const std::string way =
          nodes_.add("Mul", {nodes_.add("Sub", {x, kept_}), row("gain", layer.gain)});
      return nodes_.add("Add", {kept_, way});
    }
    case GraphLayer::Kind::lstm:
      return lstm(layer, x);
    }
    throw std::logic_error("no such layer");
  }

  std::string affine(const GraphLayer& layer, const std::string& x) {
    std::string y = nodes_.add("Mul", {x, row("gain", layer.gain)});
    const Shape pads{0, 0, 0, layer.outputs - layer.inputs};
    if (pads.back() > 0)
      y = nodes_.add("Pad", {y, nodes_.constant("pads", pads)});
    return nodes_.add("Add", {y, row("bias", layer.bias)});
  }

  std::string last_choice(std::int64_t choices) {
    remembers_choice_ = true;
    const std::int64_t size = graph_.state_size();
    std::vector<float> identity(static_cast<std::size_t>(choices * choices), 0);
    for (std::int64_t i = 0; i < choices; ++i)
      identity[static_cast<std::size_t>(i * (choices + 1))] = 1;
    const std::string last =
        nodes_.add("Cast", {nodes_.slice("memory", size - 1, 1)}, "to", onnx::TensorProto::INT64);
    const std::string flat = nodes_.add("Squeeze", {last, nodes_.constant("axis", Shape{1})});
    return nodes_.add("Gather", {nodes_.constant("identity", identity, {choices, choices}), flat});
  }

  std::string lstm(const GraphLayer& layer, const std::string& x) {
    const std::int64_t size = layer.outputs;
    const std::string hidden = nodes_.slice("memory", remembered_, size);
    const std::string cell = nodes_.slice("memory", remembered_ + size, size);
    remembered_ += 2 * size;
    const std::string gates = nodes_.add("Gemm", {nodes_.add("Concat", {x, hidden}, "axis", 1),
                                                  weight(layer), row("bias", layer.bias)});
    const auto gate = [&](std::int64_t i, const char* function) {
      return nodes_.add(function, {nodes_.slice(gates, i * size, size)});
    };
    const std::string kept = nodes_.add("Mul", {gate(1, "Sigmoid"), cell});
    const std::string added = nodes_.add("Mul", {gate(0, "Sigmoid"), gate(3, "Tanh")});
    const std::string next = nodes_.add("Add", {kept, added});
    std::string out = nodes_.add("Mul", {gate(2, "Sigmoid"), nodes_.add("Tanh", {next})});
    memory_.push_back(out);
    memory_.push_back(next);
    return out;
  }

  Nodes& nodes_;
  const learner::PolicyGraph& graph_;
  const PolicyContract& contract_;
  std::vector<std::string> memory_;
  std::string kept_;
  std::int64_t remembered_ = 0; // size of the state so far, in numbers
  bool remembers_choice_ = false;
};

std::string chosen(Nodes& nodes, const std::string& x, const GraphAction& action) {
  std::string values = x;
  if (action.kind == GraphAction::Kind::distribution) {
    std::vector<float> support;
    for (std::int64_t k = 0; k < action.atoms; ++k)
      support.push_back(
          static_cast<float>(action.minimum
                             + (action.maximum - action.minimum) * static_cast<double>(k)
                                   / static_cast<double>(action.atoms - 1)));
    values = nodes.add("Reshape",
                       {values, nodes.constant("shape", Shape{-1, action.choices, action.atoms})});
    values = nodes.add("Softmax", {values}, "axis", 2);
    values = nodes.add("MatMul", {values, nodes.constant("support", support, {action.atoms, 1})});
    values = nodes.add("Reshape", {values, nodes.constant("shape", Shape{-1, action.choices})});
  }
  return nodes.add("Cast", {nodes.add("ArgMax", {values}, "axis", 1)}, "to",
                   onnx::TensorProto::FLOAT);
}

std::string scaled(Nodes& nodes, const std::string& x, const GraphAction& action,
                   std::span<const PolicyContract::Scale> scales) {
  std::string y = action.kind == GraphAction::Kind::tanh ? nodes.add("Tanh", {x}) : x;
  y = clipped(nodes, y, scales[0].limit);
  const bool changes = std::any_of(scales.begin(), scales.end(), [](const auto& scale) {
    return scale.gain != 1 || scale.offset != 0;
  });
  if (!changes)
    return y;
  std::vector<float> gain;
  std::vector<float> offset;
  for (const PolicyContract::Scale& scale : scales) {
    gain.push_back(static_cast<float>(scale.gain));
    offset.push_back(static_cast<float>(scale.offset));
  }
  y = nodes.add("Mul", {y, nodes.constant("gain", gain, {action.count})});
  return nodes.add("Add", {y, nodes.constant("offset", offset, {action.count})});
}

void add_metadata(onnx::ModelProto& model, const PolicyContract& contract) {
  const auto add = [&](const char* key, const std::string& value) {
    onnx::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  };
  std::string observed;
  for (const ContractArray& array : contract.observations) {
    if (array.elements.empty())
      observed += (observed.empty() ? "" : ",") + array.spec.name;
    for (const ContractElement& element : array.elements)
      observed += (observed.empty() ? "" : ",") + element.name;
  }
  std::string acted;
  for (const ContractElement& element : contract.actions)
    acted += (acted.empty() ? "" : ",") + element.name;
  add("contract", contract_text(contract));
  add("observation_names", observed);
  add("action_names", acted);
  add("control_period_seconds", std::to_string(contract.control_period_seconds));
  add("history", std::to_string(contract.history));
}

} // namespace

void write_onnx(const std::filesystem::path& path, const learner::PolicyGraph& graph,
                const PolicyContract& contract) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("troupe");
  model.set_producer_version(contract.version);
  model.add_opset_import()->set_version(kOpset);
  onnx::GraphProto& out = *model.mutable_graph();
  out.set_name("policy");
  for (std::size_t i = 0; i < contract.observations.size(); ++i) {
    env::ArraySpec array = contract.observations[i].spec;
    if (i == 0)
      array.shape.at(0) *= contract.history;
    describe(*out.add_input(), array.name,
             array.is_picture() ? onnx::TensorProto::UINT8 : onnx::TensorProto::FLOAT, array.shape);
  }
  if (contract.state_size > 0)
    describe(*out.add_input(), "memory", onnx::TensorProto::FLOAT, {contract.state_size});
  Nodes nodes(out);
  Layers layers(nodes, graph, contract);
  const std::string x = layers.write();
  std::vector<std::string> parts;
  std::int64_t from = 0;
  std::size_t number = 0;
  for (const GraphAction& action : graph.actions) {
    const std::string part = graph.actions.size() == 1 ? x : nodes.slice(x, from, action.outputs());
    parts.push_back(action.choices > 0
                        ? chosen(nodes, part, action)
                        : scaled(nodes, part, action,
                                 std::span(contract.scales)
                                     .subspan(number, static_cast<std::size_t>(action.count))));
    from += action.outputs();
    number += static_cast<std::size_t>(action.count);
  }
  nodes.add("Concat", parts, {"action"});
  nodes.set("axis", std::int64_t{1});
  describe(*out.add_output(), "action", onnx::TensorProto::FLOAT, {graph.action_size()});
  if (contract.state_size > 0) {
    nodes.add("Concat", layers.memory(parts[0]), {"next_memory"});
    nodes.set("axis", std::int64_t{1});
    describe(*out.add_output(), "next_memory", onnx::TensorProto::FLOAT, {contract.state_size});
  }
  add_metadata(model, contract);
  write_text(path, model.SerializeAsString());
}

} // namespace troupe::experiments
