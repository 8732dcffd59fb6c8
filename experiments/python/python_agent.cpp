#include "experiments/python/python_agent.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/types.h>

#include "env/plugin/own_environments.hpp"
#include "experiments/python/python_acting.hpp"
#include "learner/agents/agent.hpp"
#include "learner/agents/own_agent.pb.h"
#include "learner/agents/own_agents.hpp"
#include "learner/agents/parts/deterministic_policy.hpp"
#include "learner/agents/parts/transition_batch.hpp"

namespace py = pybind11;

namespace troupe::python {
namespace {

using namespace learner;

struct ElementPair {
  at::ScalarType torch;
  const char* numpy;
};
constexpr ElementPair kElements[] = {{at::kFloat, "float32"}, {at::kDouble, "float64"},
                                     {at::kLong, "int64"},    {at::kInt, "int32"},
                                     {at::kByte, "uint8"},    {at::kBool, "bool"}};

/// Views the tensor's memory as an array. The tensor must be on the CPU.
py::array array_of(const at::Tensor& given) {
  const at::Tensor tensor = given.contiguous();
  for (const auto& [torch, numpy] : kElements)
    if (tensor.scalar_type() == torch) {
      const py::capsule owner(new at::Tensor(tensor),
                              [](void* held) { delete static_cast<at::Tensor*>(held); });
      const std::vector<py::ssize_t> shape(tensor.sizes().begin(), tensor.sizes().end());
      return py::array(py::dtype(numpy), shape, tensor.data_ptr(), owner);
    }
  throw std::invalid_argument(std::string("a batch has a tensor of type ")
                              + at::toString(tensor.scalar_type()) + ", which NumPy does not have");
}

/// Copies an array to a tensor.
at::Tensor tensor_of(const std::string& name, const py::handle& given) {
  const py::array converted(py::reinterpret_borrow<py::object>(given)); // throws Python's exception
  const auto array = py::array::ensure(converted, py::array::c_style);
  if (!array)
    throw std::bad_alloc(); // no other conversion of an array fails
  const auto type = py::str(array.dtype()).cast<std::string>();
  for (const auto& [torch, numpy] : kElements)
    if (type == numpy) {
      const std::vector<std::int64_t> shape(array.shape(), array.shape() + array.ndim());
      at::Tensor out = at::empty(shape, at::TensorOptions(torch));
      std::memcpy(out.data_ptr(), array.data(), static_cast<std::size_t>(array.nbytes()));
      return out;
    }
  throw std::invalid_argument("state '" + name + "' of the agent is of type " + type
                              + "; it must be float32, float64, int64, int32, uint8 or bool");
}

py::dict arrays_of(const TensorMap& tensors) {
  py::dict out;
  for (const auto& [name, tensor] : tensors)
    out[py::str(name)] = array_of(tensor);
  return out;
}

std::string first_line(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

/// Calls a function with the interpreter's lock. Python exceptions must not leave the lock:
/// ValueError and TypeError become std::invalid_argument with the same text, others
/// std::runtime_error with the traceback.
template <typename Call>
auto with_lock(const std::string& agent, const Call& call) {
  const py::gil_scoped_acquire lock;
  try {
    return call();
  } catch (const py::error_already_set& error) {
    if (error.matches(PyExc_ValueError) || error.matches(PyExc_TypeError))
      throw std::invalid_argument("agent " + agent + ": " + first_line(error.what()));
    throw std::runtime_error("agent " + agent + ": " + error.what());
  }
}

/// A replica that learns through its Python object.
class PythonReplica : public Replica {
public:
  PythonReplica(std::string name, PyObject* factory, py::dict* options, const Settings& settings,
                const replay::TransitionSpec& transitions)
      : name_(std::move(name)),
        factory_(factory),
        options_(options),
        transitions_(transitions),
        acting_(name_, settings, transitions) {}
  ~PythonReplica() override {
    const py::gil_scoped_acquire lock;
    learner_ = py::object();
  }

  void build(ReplicaContext& context) override {
    with_lock(name_, [&] {
      py::object replicas = py::none();
      if (context.num_replicas() > 1)
        replicas = py::make_tuple(
            reduction(context, [&context](at::Tensor& tensor) { context.all_reduce_(tensor); }),
            reduction(context, [&context](at::Tensor& tensor) { context.broadcast_(tensor); }));
      py::dict environment;
      environment["observation_size"] = acting_.inputs;
      environment["observation_shape"] = transitions_.observation().shape;
      environment["action_size"] = transitions_.action_size;
      environment["choices"] = transitions_.choices_of(0);
      environment["n_step"] = transitions_.n_step;
      environment["discount"] = transitions_.discount;
      learner_ = py::reinterpret_borrow<py::object>(factory_).attr("make")(
          *options_, environment, context.seed(), replicas);
    });
    policy_parameters(); // refuses before the run a network that actors cannot play
  }

  Input input_fn(const InputContext&) override {
    return [] { return TensorMap{}; };
  }

  Metrics step_fn(ReplicaContext&, const TensorMap& given) override {
    const TensorMap batch = checked_transitions(given, transitions_, ++updates_);
    const at::AutoGradMode gradients(true);
    return with_lock(name_, [&] {
      return learner_.attr("update")(arrays_of(batch)).cast<std::map<std::string, double>>();
    });
  }

  TensorMap parameters() override {
    return with_lock(name_, [&] {
      TensorMap out{{"counter.updates", at::full({}, updates_, at::kLong)}};
      for (const auto& [name, array] : learner_.attr("state")().cast<py::dict>()) {
        const auto key = name.cast<std::string>();
        out["python." + key] = tensor_of(key, array);
      }
      return out;
    });
  }
  TensorMap optimizer_state() override { return {}; } // contained in the parameters

  void load(const TensorMap& parameters, const TensorMap&) override {
    updates_ = parameters.at("counter.updates").item<std::int64_t>();
    with_lock(name_, [&] {
      py::dict state;
      for (const auto& [name, tensor] : parameters)
        if (name.starts_with("python."))
          state[py::str(name.substr(7))] = array_of(tensor.to(at::kCPU).clone());
      learner_.attr("load")(state);
    });
  }

  at::Tensor priorities() override {
    return with_lock(name_, [&] {
      const py::object given = learner_.attr("priorities")();
      return given.is_none() ? at::Tensor() : tensor_of("priorities", given).to(at::kDouble);
    });
  }

  at::Tensor policy_parameters() override {
    const at::NoGradGuard no_gradient;
    const ParameterLayout& layout = acting_.layout;
    return with_lock(name_, [&] {
      const at::Tensor flat = at::zeros({layout.count()});
      const py::list given = learner_.attr("policy")();
      if (given.size() != layout.entries().size())
        throw std::invalid_argument("policy of agent " + name_ + " has "
                                    + std::to_string(given.size() / 2)
                                    + " layers; its encoder and policy_layers make "
                                    + std::to_string(layout.entries().size() / 2));
      for (std::size_t i = 0; i < given.size(); ++i) {
        const at::Tensor to = layout.shown_view(flat, i);
        const at::Tensor from = tensor_of(layout.entries()[i].name, given[i]);
        if (from.sizes() != to.sizes())
          throw std::invalid_argument(layout.entries()[i].name + " of agent " + name_
                                      + " is of shape " + text_of(from.sizes()) + "; it must be "
                                      + text_of(to.sizes()));
        to.copy_(from);
      }
      return flat;
    });
  }

private:
  /// A function for Python that reduces a float32 array in place.
  template <typename Reduce>
  static py::cpp_function reduction(const ReplicaContext& context, const Reduce& reduce) {
    return {[&context, reduce](py::array_t<float, py::array::c_style> array) {
      at::Tensor tensor = at::from_blob(array.mutable_data(), {array.size()});
      const py::gil_scoped_release released; // the other replicas need the lock
      const at::NoGradGuard no_gradient;
      at::Tensor on_device = tensor.to(context.device());
      reduce(on_device);
      tensor.copy_(on_device);
    }};
  }

  static std::string text_of(at::IntArrayRef shape) {
    std::string out;
    for (const std::int64_t extent : shape)
      out += (out.empty() ? "[" : ", ") + std::to_string(extent);
    return out + "]";
  }

  std::string name_;
  PyObject* factory_; // never released
  py::dict* options_; // options of the agent
  replay::TransitionSpec transitions_;
  Acting acting_;
  py::object learner_;
  std::int64_t updates_ = 0;
};

class PythonAgent : public Agent {
public:
  PythonAgent(std::string name, PyObject* factory, const std::vector<std::string>& assignments)
      : name_(std::move(name)), factory_(factory) {
    with_lock(name_, [&] {
      options_ = new py::dict;
      for (const std::string& assignment : assignments) {
        const std::size_t equals = assignment.find('=');
        (*options_)[py::str(assignment.substr(0, equals))] = assignment.substr(equals + 1);
      }
      const py::dict given =
          py::reinterpret_borrow<py::object>(factory_).attr("settings")(*options_);
      settings_.batch_size = given["batch_size"].cast<std::int64_t>();
      settings_.layers = given["layers"].cast<std::vector<std::int64_t>>();
      const auto schedule = [&](const char* key, Schedule& out) {
        const auto numbers = given[key].cast<std::vector<double>>();
        out = {numbers.at(0), numbers.at(1), static_cast<std::int64_t>(numbers.at(2))};
      };
      schedule("noise", settings_.noise);
      schedule("epsilon", settings_.epsilon);
      settings_.discrete = given["discrete"].cast<bool>();
      settings_.encoder = given["encoder"].cast<std::string>();
      settings_.encoder_channels = given["encoder_channels"].cast<std::int64_t>();
    });
  }
  ~PythonAgent() override {
    const py::gil_scoped_acquire lock;
    delete options_;
  }

  std::int64_t batch_size() const override { return settings_.batch_size; }
  std::unique_ptr<Policy> make_policy(const replay::TransitionSpec& transitions) const override {
    return make_python_policy(name_, settings_, transitions);
  }
  std::unique_ptr<Replica> make_replica(const replay::TransitionSpec& transitions) const override {
    return std::make_unique<PythonReplica>(name_, factory_, options_, settings_, transitions);
  }

private:
  std::string name_;
  PyObject* factory_;
  py::dict* options_ = nullptr;
  Settings settings_;
};

AgentPtr made(const std::string& name, PyObject* factory, const google::protobuf::Message& block) {
  const auto& options = dynamic_cast<const agents::OwnAgent&>(block).options();
  return std::make_shared<const PythonAgent>(
      name, factory, std::vector<std::string>(options.begin(), options.end()));
}

} // namespace

void add_python_agent(const py::object& factory) {
  const auto name = factory.attr("name").cast<std::string>();
  PyObject* const kept = py::object(factory).release().ptr(); // the agent kinds outlive the
                                                              // interpreter
  AgentKind kind{.name = name,
                 .help = factory.attr("help").cast<std::string>(),
                 .actions = factory.attr("discrete").cast<bool>() ? ActionKind::choice
                                                                  : ActionKind::continuous,
                 .asynchronous = false,
                 .metrics = factory.attr("metrics").cast<std::vector<std::string>>(),
                 .options = agents::OwnAgent::descriptor()};
  const auto encoder = factory.attr("encoder").is_none()
                           ? std::string()
                           : factory.attr("encoder").cast<std::string>();
  kind.states = encoder.empty();
  kind.pixels = !encoder.empty();
  kind.check = [name, kept, encoder](const google::protobuf::Message& block,
                                     const AgentSetting& setting) {
    std::vector<OptionProblem> problems;
    if (encoder.empty() && setting.picture)
      problems.push_back({"environment.pixels", "is given, but this agent in Python sees states; "
                                                "leave the block out, or give its decorator "
                                                "encoder=\"drq\""});
    if (!encoder.empty())
      problems = all_problems({refused_observations(false, true, setting),
                               encoder_problems(name, encoder, 0, setting)});
    try {
      made(name, kept, block);
    } catch (const std::exception& problem) {
      problems.push_back({"options", std::string("are refused: ") + problem.what()});
    }
    return problems;
  };
  kind.make = [name, kept](const google::protobuf::Message& block) {
    return made(name, kept, block);
  };
  learner::add_agent(std::move(kind));
}

} // namespace troupe::python
