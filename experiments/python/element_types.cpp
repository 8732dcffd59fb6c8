#include "experiments/python/element_types.hpp"

#include <cstdint>

namespace py = pybind11;

namespace troupe::python {

py::dtype dtype_of(env::ElementType type) {
  switch (type) {
  case env::ElementType::uint8:
    return py::dtype::of<std::uint8_t>();
  case env::ElementType::float32:
    return py::dtype::of<float>();
  case env::ElementType::float64:
    return py::dtype::of<double>();
  case env::ElementType::int64:
    break;
  }
  return py::dtype::of<std::int64_t>();
}

} // namespace troupe::python
