#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "env/make/make.hpp"
#include "experiments/python/native.hpp"
#include "experiments/python/python_pool.hpp"

namespace py = pybind11;

namespace troupe::python {

void add_environments(py::module_& module) {
  module.def("environment_names", &env::environment_names);
  py::class_<PythonPool>(module, "Pool")
      .def(py::init([](const std::vector<std::string>& environment, int environments, int threads,
                       std::uint64_t seed, std::optional<bool> spares, int failure_budget,
                       bool bare, bool keeps_rows) {
             const env::PoolOptions options{.environments = environments,
                                            .threads = threads,
                                            .seed = seed,
                                            .spares = spares,
                                            .failure_budget = failure_budget};
             return std::make_unique<PythonPool>(environment, options, bare, keeps_rows);
           }),
           py::arg("environment"), py::kw_only(), py::arg("environments") = 1,
           py::arg("threads") = 1, py::arg("seed") = 1, py::arg("spares") = py::none(),
           py::arg("failure_budget") = 3, py::arg("bare") = false, py::arg("keeps_rows") = false)
      .def("spec", &PythonPool::spec)
      .def_property_readonly("environments", &PythonPool::environments)
      .def_property_readonly("threads", &PythonPool::threads)
      .def("seed", &PythonPool::seed, py::arg("environments"), py::arg("seeds"))
      .def("reset", &PythonPool::reset, py::arg("environments"), py::arg("deadline"))
      .def("step", &PythonPool::step, py::arg("actions"), py::arg("deadline"))
      .def("send_reset", &PythonPool::send_reset, py::arg("environments"))
      .def("send", &PythonPool::send, py::arg("environments"), py::arg("actions"))
      .def("receive", &PythonPool::receive, py::arg("rows"), py::arg("deadline"))
      .def("in_flight", &PythonPool::in_flight)
      .def("pictures", &PythonPool::pictures, py::arg("count"), py::arg("kind"), py::arg("height"),
           py::arg("width"), py::arg("camera"))
      .def("error", &PythonPool::error, py::arg("environment"))
      .def("in_service", &PythonPool::in_service, py::arg("environment"))
      .def("save_state", &PythonPool::save_state)
      .def("load_state", &PythonPool::load_state, py::arg("state"));
}

} // namespace troupe::python
