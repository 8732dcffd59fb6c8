#pragma once

#include <pybind11/pybind11.h>

namespace troupe::python {

// The parts of the extension module `troupe._native`; the package's Python sources document them.
void add_environments(pybind11::module_& module);
void add_ray_caster(pybind11::module_& module);
void add_policy(pybind11::module_& module);
void add_training(pybind11::module_& module);

} // namespace troupe::python
