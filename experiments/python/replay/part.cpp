#include "experiments/python/replay/part.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "experiments/python/element_types.hpp"
#include "experiments/python/native.hpp"
#include "experiments/python/replay/insertion_sink.hpp"
#include "experiments/python/replay/replay_info.hpp"

namespace py = pybind11;

namespace troupe::python {
namespace {

/// Sets `rows` to the number of rows of every item and returns an empty vector; returns `first` if
/// the numbers differ.
std::vector<std::uint64_t> unless_equal(std::vector<std::uint64_t> first, std::size_t& rows) {
  rows = first.size() < 2 ? 0 : first[1] - first[0];
  for (std::size_t i = 0; i + 1 < first.size(); ++i)
    if (first[i + 1] - first[i] != rows)
      return first;
  return {};
}

py::array read_only(py::array array) {
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

} // namespace

ReplayPart::ReplayPart(std::shared_ptr<const replay::Signature> signature, replay::ColumnPart part)
    : signature_(std::move(signature)), writable_(false) {
  const auto owner = std::make_shared<replay::ColumnPart>(std::move(part));
  items_ = owner->items;
  for (replay::ColumnPart::Column& from : owner->columns) {
    Column& column = columns_.emplace_back();
    column.bytes = const_cast<std::byte*>(from.bytes.data()); // NumPy's arrays of it are read-only
    column.first = unless_equal(std::move(from.first), column.rows);
  }
  memory_ = owner;
}

ReplayPart::ReplayPart(std::shared_ptr<const replay::Signature> signature,
                       std::shared_ptr<const void> memory,
                       std::span<const replay::SampledItem> items, std::vector<Column> columns)
    : signature_(std::move(signature)),
      memory_(std::move(memory)),
      items_(items),
      columns_(std::move(columns)),
      writable_(true) {}

py::array ReplayPart::view(const py::object& self, std::size_t place,
                           std::vector<py::ssize_t> leading) const {
  const env::ArraySpec& spec = signature_->columns[place];
  leading.insert(leading.end(), spec.shape.begin(), spec.shape.end());
  py::array array(dtype_of(spec.type), std::move(leading), columns_[place].bytes, self);
  return writable_ ? array : read_only(std::move(array));
}

py::array ReplayPart::rows(const py::object& self, std::size_t place) {
  const auto& part = self.cast<const ReplayPart&>();
  const Column& column = part.columns_.at(place);
  const std::size_t rows = column.first.empty() ? part.items() * column.rows : column.first.back();
  return part.view(self, place, {static_cast<py::ssize_t>(rows)});
}

py::array ReplayPart::first(const py::object& self, std::size_t place) {
  const auto& part = self.cast<const ReplayPart&>();
  const Column& column = part.columns_.at(place);
  if (!column.first.empty())
    return read_only(py::array_t<std::uint64_t>(static_cast<py::ssize_t>(column.first.size()),
                                                column.first.data(), self));
  py::array_t<std::uint64_t> first(static_cast<py::ssize_t>(part.items() + 1));
  for (std::size_t i = 0; i <= part.items(); ++i)
    first.mutable_data()[i] = i * column.rows;
  return first;
}

py::array ReplayPart::stacked(const py::object& self, std::size_t place, bool single) {
  const auto& part = self.cast<const ReplayPart&>();
  const Column& column = part.columns_.at(place);
  const std::string& name = part.signature_->columns[place].name;
  if (!column.first.empty())
    throw std::invalid_argument("the items show different numbers of rows of '" + name
                                + "'; take rows('" + name + "', item) of each");
  const auto items = static_cast<py::ssize_t>(part.items());
  if (!single)
    return part.view(self, place, {items, static_cast<py::ssize_t>(column.rows)});
  if (column.rows != 1)
    throw std::invalid_argument("the items show " + std::to_string(column.rows) + " rows of '"
                                + name + "' and the table has items of one step; make it with "
                                + "length=" + std::to_string(column.rows) + ", or take rows('"
                                + name + "', item) of each");
  return part.view(self, place, {items});
}

py::array ReplayPart::of_items(const py::object& self, const std::string& what) {
  using replay::SampledItem;
  const auto& part = self.cast<const ReplayPart&>();
  const auto view = [&](std::size_t offset, const py::dtype& type) {
    py::array array(type, {static_cast<py::ssize_t>(part.items())},
                    {static_cast<py::ssize_t>(sizeof(SampledItem))},
                    reinterpret_cast<const std::byte*>(part.items_.data()) + offset, self);
    return part.writable_ ? array : read_only(std::move(array));
  };
  if (what == "key")
    return view(offsetof(SampledItem, key), py::dtype::of<std::uint64_t>());
  if (what == "priority")
    return view(offsetof(SampledItem, priority), py::dtype::of<double>());
  if (what == "probability")
    return view(offsetof(SampledItem, probability), py::dtype::of<double>());
  const auto number = py::dtype::of<std::uint32_t>();
  if (what == "rows")
    return view(offsetof(SampledItem, rows), number);
  if (what == "history")
    return view(offsetof(SampledItem, history), number);
  if (what == "times_sampled")
    return view(offsetof(SampledItem, times_sampled), number);
  if (what == "table_items")
    return view(offsetof(SampledItem, table_items), number);
  throw std::invalid_argument("items have no " + what);
}

void add_replay_sinks(py::module_& module) {
  py::class_<InsertionSink>(module, "ReplaySink")
      .def_property_readonly(
          "columns", [](const InsertionSink& sink) { return columns_list(*sink.signature()); })
      .def_property_readonly("items_are",
                             [](const InsertionSink& sink) { return sink.signature()->items; });
  py::class_<ReplayPart>(module, "ReplayPart")
      .def_property_readonly("items", &ReplayPart::items)
      .def("rows", &ReplayPart::rows)
      .def("first", &ReplayPart::first)
      .def("stacked", &ReplayPart::stacked)
      .def("of_items", &ReplayPart::of_items);
}

} // namespace troupe::python
