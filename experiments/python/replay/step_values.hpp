#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "replay/chunks/signature.hpp"

namespace troupe::python {

/// Finds the bytes of steps that Python passes as a dictionary of columns. A contiguous NumPy array
/// of the column's type is used in place; other values are converted. One thread at a time, with
/// the interpreter's lock.
class StepValues {
public:
  /// `convert`(column's index, leading dimensions, value) returns an array that fits, or raises.
  StepValues(std::shared_ptr<const replay::Signature> signature, pybind11::function convert);

  /// One pointer per column, valid until the next call if `values` is not changed. Throws
  /// std::invalid_argument if a column is missing or unknown.
  std::span<const std::byte* const> step(const pybind11::dict& values);

  /// Like step(), but for arrays [steps, column's shape]. All must have the same number of steps,
  /// which is stored in `count`.
  std::span<const std::byte* const> steps(const pybind11::dict& values, std::int64_t& count);

private:
  PyObject* value_of(const pybind11::dict& values, std::size_t column);
  void check_number(const pybind11::dict& values) const;
  const std::byte* number(PyObject* value, std::size_t column);
  const std::byte* converted(PyObject* value, std::size_t column, std::size_t leading,
                             std::int64_t& count);

  std::shared_ptr<const replay::Signature> signature_;
  pybind11::function convert_;
  std::vector<pybind11::str> names_;
  std::vector<const std::byte*> bytes_; // one pointer per column
  std::vector<pybind11::object> kept_;  // arrays that bytes_ points into
  std::vector<double> numbers_;         // storage of single numbers
};

} // namespace troupe::python
