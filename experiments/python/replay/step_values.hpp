#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "replay/chunks/signature.hpp"

namespace troupe::python {

/// Finds the bytes of steps that Python gives as a dictionary of columns: those of a contiguous
/// NumPy array of the column's type in place, all others after a conversion. One thread at a time,
/// with the interpreter's lock.
class StepValues {
public:
  /// `convert`(column's place, leading dimensions, value) gives an array that fits, or raises.
  StepValues(std::shared_ptr<const replay::Signature> signature, pybind11::function convert);

  /// A value for each column; valid while `values` is unchanged, until the next call. Throws
  /// std::invalid_argument on missing and unknown columns.
  std::span<const std::byte* const> step(const pybind11::dict& values);

  /// Arrays [steps, column's shape] of one length, which is set.
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
  std::vector<const std::byte*> bytes_; // of each column
  std::vector<pybind11::object> kept_;  // arrays that bytes_ points into
  std::vector<double> numbers_;         // storage of single numbers
};

} // namespace troupe::python
