#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "replay/batch/column_batch.hpp"
#include "replay/chunks/signature.hpp"

namespace troupe::python {

/// Sampled items in one block of memory. Its NumPy arrays are views of that memory and keep it
/// alive.
class ReplayPart {
public:
  struct Column {
    std::byte* bytes = nullptr;       // [rows of all items, column's shape]
    std::vector<std::uint64_t> first; // [items + 1]; empty: each item has `rows` rows
    std::size_t rows = 0;
  };

  /// The items of a received message, which are read-only.
  ReplayPart(std::shared_ptr<const replay::Signature> signature, replay::ColumnPart part);
  /// `memory` owns `items` and the columns.
  ReplayPart(std::shared_ptr<const replay::Signature> signature, std::shared_ptr<const void> memory,
             std::span<const replay::SampledItem> items, std::vector<Column> columns);

  std::size_t items() const { return items_.size(); }

  // `self` is the Python object of this part; it owns the arrays.
  /// [rows of all items, column's shape]
  static pybind11::array rows(const pybind11::object& self, std::size_t place);
  /// uint64 [items + 1]
  static pybind11::array first(const pybind11::object& self, std::size_t place);
  /// [items, rows, column's shape], without the axis `rows` for single steps. Throws
  /// std::invalid_argument if items have different numbers of rows, or if `single` and they do not
  /// have one row.
  static pybind11::array stacked(const pybind11::object& self, std::size_t place, bool single);
  /// [items]: one of "key", "priority", "probability", "rows", "history", "times_sampled",
  /// "table_items".
  static pybind11::array of_items(const pybind11::object& self, const std::string& what);

private:
  pybind11::array view(const pybind11::object& self, std::size_t place,
                       std::vector<pybind11::ssize_t> leading) const;

  std::shared_ptr<const replay::Signature> signature_;
  std::shared_ptr<const void> memory_;
  std::span<const replay::SampledItem> items_;
  std::vector<Column> columns_;
  bool writable_;
};

} // namespace troupe::python
