#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "replay/service/shard_client.hpp"

namespace troupe::python {

/// The fields of Python's class Info.
pybind11::dict info_dict(const replay::ShardInfo& info);

/// (name, type, shape) of each column.
pybind11::list columns_list(const replay::Signature& signature);

/// Copies a vector with any strides, or anything that NumPy can convert to one. Throws
/// std::invalid_argument if the array does not have one dimension, and the Python exception of a
/// conversion that fails.
template <typename Number>
std::vector<Number> numbers_of(const pybind11::object& values, const char* what) {
  using Array = pybind11::array_t<Number, pybind11::array::forcecast>;
  const Array array(values); // ensure() would discard the exception
  if (array.ndim() != 1)
    throw std::invalid_argument(std::string(what) + " must be a vector");
  const auto numbers = array.template unchecked<1>();
  std::vector<Number> made(static_cast<std::size_t>(array.size()));
  for (std::size_t i = 0; i < made.size(); ++i)
    made[i] = numbers(static_cast<pybind11::ssize_t>(i));
  return made;
}

} // namespace troupe::python
