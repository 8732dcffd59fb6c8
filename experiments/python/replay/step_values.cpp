#include "experiments/python/replay/step_values.hpp"

#include <pybind11/numpy.h>

#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace py = pybind11;

namespace troupe::python {
namespace {

using Api = py::detail::npy_api;

bool has_type(const PyObject* array, env::ElementType type) {
  const auto* descriptor = py::detail::array_descriptor_proxy(
      py::detail::array_proxy(const_cast<PyObject*>(array))->descr);
  if (descriptor->byteorder == '>')
    return false;
  const int number = descriptor->type_num;
  switch (type) {
  case env::ElementType::uint8:
    return number == Api::NPY_UBYTE_ || number == Api::NPY_BOOL_;
  case env::ElementType::float32:
    return number == Api::NPY_FLOAT_;
  case env::ElementType::float64:
    return number == Api::NPY_DOUBLE_;
  case env::ElementType::int64:
    break;
  }
  return number == Api::NPY_LONG_ || number == Api::NPY_LONGLONG_;
}

/// The bytes of an array [leading…, column's shape] that needs no conversion; otherwise null.
const std::byte* bytes_of(PyObject* value, const env::ArraySpec& column, std::size_t leading,
                          std::int64_t& count) {
  if (!Api::get().PyArray_Check_(value) || !has_type(value, column.type))
    return nullptr;
  const auto* array = py::detail::array_proxy(value);
  if ((array->flags & Api::NPY_ARRAY_C_CONTIGUOUS_) == 0
      || static_cast<std::size_t>(array->nd) != leading + column.shape.size())
    return nullptr;
  for (std::size_t i = 0; i < column.shape.size(); ++i)
    if (array->dimensions[leading + i] != column.shape[i])
      return nullptr;
  if (leading > 0)
    count = array->dimensions[0];
  return reinterpret_cast<const std::byte*>(array->data);
}

bool is_floating(env::ElementType type) {
  return type == env::ElementType::float32 || type == env::ElementType::float64;
}

} // namespace

StepValues::StepValues(std::shared_ptr<const replay::Signature> signature, py::function convert)
    : signature_(std::move(signature)),
      convert_(std::move(convert)),
      bytes_(signature_->columns.size()),
      numbers_(signature_->columns.size()) {
  for (const env::ArraySpec& column : signature_->columns)
    names_.emplace_back(
        py::reinterpret_steal<py::str>(PyUnicode_InternFromString(column.name.c_str())));
}

PyObject* StepValues::value_of(const py::dict& values, std::size_t column) {
#ifdef Py_GIL_DISABLED // another thread may remove the value from the dictionary meanwhile
  PyObject* value = nullptr;
  PyDict_GetItemRef(values.ptr(), names_[column].ptr(), &value);
  kept_.push_back(py::reinterpret_steal<py::object>(value));
#else
  PyObject* value = PyDict_GetItemWithError(values.ptr(), names_[column].ptr());
#endif
  if (value == nullptr) {
    if (PyErr_Occurred() != nullptr)
      throw py::error_already_set();
    throw std::invalid_argument("column \"" + signature_->columns[column].name
                                + "\" is missing; a step of " + replay::describe(*signature_)
                                + " has a value for each");
  }
  return value;
}

void StepValues::check_number(const py::dict& values) const {
  if (values.size() != names_.size())
    throw std::invalid_argument(std::to_string(values.size()) + " columns are given, but "
                                + std::to_string(names_.size()) + " belong to a step of "
                                + replay::describe(*signature_));
}

/// Converts a Python or NumPy number for a column of single numbers; null if it needs `convert`.
const std::byte* StepValues::number(PyObject* value, std::size_t column) {
  const env::ElementType type = signature_->columns[column].type;
  auto* out = reinterpret_cast<std::byte*>(&numbers_[column]);
  if (is_floating(type)) {
    const PyNumberMethods* methods = Py_TYPE(value)->tp_as_number;
    if (methods == nullptr || methods->nb_float == nullptr)
      return nullptr;
    const double number = PyFloat_AsDouble(value);
    if (number == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return nullptr;
    }
    if (type == env::ElementType::float64) {
      std::memcpy(out, &number, sizeof number);
    } else {
      const auto rounded = static_cast<float>(number);
      std::memcpy(out, &rounded, sizeof rounded);
    }
    return out;
  }
  if (PyIndex_Check(value) == 0)
    return nullptr;
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value));
  const long long number = index ? PyLong_AsLongLong(index.ptr()) : -1;
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  if (type == env::ElementType::int64) {
    std::memcpy(out, &number, sizeof number);
    return out;
  }
  if (number < 0 || number > std::numeric_limits<std::uint8_t>::max())
    return nullptr;
  *out = static_cast<std::byte>(number);
  return out;
}

const std::byte* StepValues::converted(PyObject* value, std::size_t column, std::size_t leading,
                                       std::int64_t& count) {
  kept_.push_back(convert_(column, leading, py::handle(value)));
  const std::byte* bytes =
      bytes_of(kept_.back().ptr(), signature_->columns[column], leading, count);
  if (bytes == nullptr)
    throw std::invalid_argument("column \"" + signature_->columns[column].name
                                + "\" could not be converted");
  return bytes;
}

std::span<const std::byte* const> StepValues::step(const py::dict& values) {
  kept_.clear();
  std::int64_t ignored = 0;
  for (std::size_t c = 0; c < bytes_.size(); ++c) {
    PyObject* value = value_of(values, c);
    const env::ArraySpec& column = signature_->columns[c];
    bytes_[c] = bytes_of(value, column, 0, ignored);
    if (bytes_[c] == nullptr && column.shape.empty() && !Api::get().PyArray_Check_(value))
      bytes_[c] = number(value, c);
    if (bytes_[c] == nullptr)
      bytes_[c] = converted(value, c, 0, ignored);
  }
  check_number(values);
  return bytes_;
}

std::span<const std::byte* const> StepValues::steps(const py::dict& values, std::int64_t& count) {
  kept_.clear();
  for (std::size_t c = 0; c < bytes_.size(); ++c) {
    PyObject* value = value_of(values, c);
    std::int64_t steps = 0;
    bytes_[c] = bytes_of(value, signature_->columns[c], 1, steps);
    if (bytes_[c] == nullptr)
      bytes_[c] = converted(value, c, 1, steps);
    if (c > 0 && steps != count)
      throw std::invalid_argument("columns of " + std::to_string(count) + " and "
                                  + std::to_string(steps)
                                  + " steps; all must have the same length");
    count = steps;
  }
  check_number(values);
  return bytes_;
}

} // namespace troupe::python
