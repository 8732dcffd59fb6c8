#pragma once

#include <pybind11/pybind11.h>

namespace troupe::python {

// The parts of the extension module `troupe._native`. The package's Python sources document them.
void add_environments(pybind11::module_& module);
void add_ray_caster(pybind11::module_& module);
void add_policy(pybind11::module_& module);
void add_training(pybind11::module_& module);
void add_replay_sinks(pybind11::module_& module); // must be called before the next three
void add_replay_client(pybind11::module_& module);
void add_replay_table(pybind11::module_& module);
void add_replay_writers(pybind11::module_& module);

} // namespace troupe::python
