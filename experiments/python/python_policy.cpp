#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors/roles/checkpoint.hpp"
#include "env/make/make.hpp"
#include "experiments/commands/running/evaluate_run.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/plan.hpp"
#include "experiments/python/native.hpp"
#include "experiments/python/released_lock.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "learner/acting/transition_spec.hpp"

namespace py = pybind11;

namespace troupe::python {
namespace {

/// "uint8 [rows, 3, 84, 84]"
std::string words_of_rows(const std::string& type, const std::string& rows,
                          std::span<const std::int64_t> extents) {
  std::string text = type + " [" + rows;
  for (const std::int64_t extent : extents)
    text += ", " + std::to_string(extent);
  return text + "]";
}

/// The acting policy of a checkpoint, for observations as the run's environment produces them. One
/// thread at a time; others wait.
class PythonPolicyOfRun {
public:
  PythonPolicyOfRun(const std::string& run, const std::string& checkpoint) {
    const ReleasedLock released;
    const std::filesystem::path folder(run);
    experiments::check_is_run(folder);
    const auto experiment = experiments::load_experiment(folder / "config.textproto");
    const auto from = checkpoint.empty() ? actors::latest_checkpoint(folder)
                                         : folder / "checkpoints" / checkpoint;
    if (from.empty() || !std::filesystem::exists(from / "manifest.json"))
      throw std::invalid_argument("checkpoint \"" + checkpoint + "\" is not in " + run
                                  + "/checkpoints, or not complete; name one that is");
    actors::verify_checkpoint(from);
    const actors::RunConfig config = experiments::plan_run(experiment);
    if (!config.agent)
      throw std::invalid_argument(run + " was trained on data and has no policy");
    spec_ = env::make_environment(config.environment)->spec();
    const auto transitions =
        learner::stored_by(*config.agent, learner::transition_spec(spec_, config.replay.n_step,
                                                                   config.replay.discount));
    policy_ = config.agent->make_policy(transitions);
    policy_->load(experiments::policy_parameters(config, transitions, from));
  }

  /// `arrays`: [n, …] by name. `first` [n]: whether the row begins an episode; its recurrent state
  /// is then set to zero.
  py::array act(const std::map<std::string, py::array>& arrays, const py::object& first) {
    const std::size_t row = spec_.observation_bytes();
    std::vector<std::byte> block;
    std::size_t count = 0;
    for (std::size_t i = 0; i < spec_.observations.size(); ++i) {
      const env::ArraySpec& wanted = spec_.observations[i];
      const auto found = arrays.find(wanted.name);
      if (found == arrays.end() || arrays.size() != spec_.observations.size())
        throw std::invalid_argument(
            "observation '" + wanted.name
            + "' is missing, or there are additional ones; give those of the run's environment");
      const auto array = py::array::ensure(found->second, py::array::c_style);
      if (!array)
        throw std::bad_alloc(); // no other conversion of an array fails
      const auto type = py::str(array.dtype()).cast<std::string>();
      const std::vector<std::int64_t> shape(array.shape(), array.shape() + array.ndim());
      const auto extents = std::span(shape).subspan(shape.empty() ? 0 : 1); // of a row
      const std::size_t rows = shape.empty() ? 0 : static_cast<std::size_t>(shape[0]);
      if (rows == 0 || (i > 0 && rows != count) || !std::ranges::equal(extents, wanted.shape)
          || type != env::element_name(wanted.type))
        throw std::invalid_argument(
            "observation '" + wanted.name + "' is "
            + words_of_rows(type, shape.empty() ? "" : std::to_string(rows), extents)
            + "; it must be " + words_of_rows(env::element_name(wanted.type), "rows", wanted.shape)
            + ", with as many rows as the others");
      count = rows;
      block.resize(count * row);
      const auto* from = static_cast<const std::byte*>(array.data());
      for (std::size_t k = 0; k < count; ++k)
        std::memcpy(block.data() + k * row + spec_.observation_offset(i), from + k * wanted.bytes(),
                    wanted.bytes());
    }
    std::vector<std::uint8_t> begins(count, first.is_none() ? 0 : 1);
    if (!first.is_none()) {
      const auto given = first.cast<std::vector<bool>>();
      if (given.size() != count)
        throw std::invalid_argument("first has " + std::to_string(given.size()) + " entries for "
                                    + std::to_string(count) + " observations");
      std::copy(given.begin(), given.end(), begins.begin());
    }
    const auto size = spec_.action.size();
    py::array_t<float> actions({static_cast<py::ssize_t>(count), static_cast<py::ssize_t>(size)});
    const std::span out(actions.mutable_data(), count * size);
    const ReleasedLock released;
    const std::lock_guard lock(mutex_);
    const auto remembered = static_cast<std::size_t>(policy_->state_size());
    if (state_.size() != count * remembered)
      state_.assign(count * remembered, 0);
    for (std::size_t k = 0; k < count; ++k)
      if (begins[k] != 0)
        std::fill_n(state_.begin() + static_cast<std::ptrdiff_t>(k * remembered), remembered, 0.0F);
    policy_->act(block, static_cast<std::int64_t>(count), out, state_);
    return actions;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const env::ArraySpec& array : spec_.observations)
      out.push_back(array.name);
    return out;
  }
  std::vector<std::int64_t> choices() const { return spec_.action.choices; }

private:
  env::EnvironmentSpec spec_;
  std::unique_ptr<learner::Policy> policy_;
  std::vector<float> state_; // of a recurrent policy, [rows, state size]
  std::mutex mutex_;
};

} // namespace

void add_policy(py::module_& module) {
  py::class_<PythonPolicyOfRun>(module, "Policy")
      .def(py::init<const std::string&, const std::string&>(), py::arg("run"),
           py::arg("checkpoint"))
      .def("act", &PythonPolicyOfRun::act, py::arg("arrays"), py::arg("first"))
      .def_property_readonly("names", &PythonPolicyOfRun::names)
      .def_property_readonly("choices", &PythonPolicyOfRun::choices);
}

} // namespace troupe::python
