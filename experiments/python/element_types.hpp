#pragma once

#include <pybind11/numpy.h>

#include "env/spec.hpp"

namespace troupe::python {

pybind11::dtype dtype_of(env::ElementType type);

} // namespace troupe::python
