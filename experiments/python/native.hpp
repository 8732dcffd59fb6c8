#pragma once

#include <pybind11/pybind11.h>

namespace troupe::python {

// The parts of the extension module `troupe._native`; the package's Python sources document them.
void add_environments(pybind11::module_& module);
void add_ray_caster(pybind11::module_& module);
void add_policy(pybind11::module_& module);
void add_training(pybind11::module_& module);
void add_replay_sinks(pybind11::module_& module); // before the three below
void add_replay_client(pybind11::module_& module);
void add_replay_table(pybind11::module_& module);
void add_replay_writers(pybind11::module_& module);

} // namespace troupe::python
