#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include "replay/service/shard_client.hpp"

namespace troupe::python {

/// The fields of Python's Info.
pybind11::dict info_dict(const replay::ShardInfo& info);

/// (name, type, shape) of each column.
pybind11::list columns_list(const replay::Signature& signature);

using Keys =
    pybind11::array_t<std::uint64_t, pybind11::array::c_style | pybind11::array::forcecast>;
using Priorities = pybind11::array_t<double, pybind11::array::c_style | pybind11::array::forcecast>;

template <typename Array>
auto span_of(const Array& array, const char* what) {
  if (array.ndim() != 1)
    throw std::invalid_argument(std::string(what) + " must be a vector");
  return std::span(array.data(), static_cast<std::size_t>(array.size()));
}

} // namespace troupe::python
