#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "replay/chunks/insertion_split.hpp"
#include "replay/python/native_client.hpp"
#include "replay/writers/writer.hpp"

namespace troupe::replay::python {

namespace py = pybind11;

namespace {

/// The rows of a column that can be copied without conversion: the buffer of a C-contiguous array.
class Rows {
public:
  /// Opens the buffer of `value`; false if it is not [leading..., column's shape] of the column's
  /// type.
  bool open(PyObject* value, const env::ArraySpec& column, std::size_t leading) {
    if (PyObject_GetBuffer(value, &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
      PyErr_Clear();
      return false;
    }
    open_ = true;
    const auto dimensions = static_cast<std::size_t>(view_.ndim);
    if (!fits(column.type) || dimensions != leading + column.shape.size())
      return false;
    for (std::size_t i = 0; i < column.shape.size(); ++i)
      if (view_.shape[leading + i] != column.shape[i])
        return false;
    return true;
  }
  void close() {
    if (std::exchange(open_, false))
      PyBuffer_Release(&view_);
  }
  Rows() = default;
  ~Rows() { close(); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  const std::byte* data() const { return static_cast<const std::byte*>(view_.buf); }
  std::int64_t count() const { return view_.shape[0]; }

private:
  bool fits(env::ElementType type) const {
    const std::string format = view_.format == nullptr ? "B" : view_.format;
    const char code = struct_code(type);
    return format.size() == 1 && (format[0] == code || (code == 'l' && format[0] == 'q'));
  }

  Py_buffer view_{};
  bool open_ = false;
};

/// A Writer whose items may belong to several tables. One thread at a time: the interpreter's lock
/// is held except while inserting.
class StepWriter {
public:
  StepWriter(Client& client, std::uint64_t id, std::int64_t reach, int chunk_rows,
             py::function convert)
      : client_(client),
        signature_(client.signature()),
        writer_(signature_, id, {.chunk_rows = chunk_rows, .reach = reach}),
        convert_(std::move(convert)) {}

  std::int64_t rows() const { return writer_.rows(); }
  std::int64_t kept_rows() const { return writer_.kept_rows(); }
  std::int64_t pending_items() const { return writer_.pending_items(); }

  /// A step: a value for each column.
  void append(const py::dict& values) {
    with_rows(values, 0, [&](const std::vector<Rows>& rows) {
      for (std::size_t c = 0; c < rows.size(); ++c)
        copy(c, rows[c].data());
      writer_.append();
    });
  }

  /// Steps: arrays [steps, column's shape] of one length.
  void extend(const py::dict& values) {
    with_rows(values, 1, [&](const std::vector<Rows>& rows) {
      for (const Rows& column : rows)
        if (column.count() != rows[0].count())
          throw std::invalid_argument("columns of " + std::to_string(rows[0].count()) + " and "
                                      + std::to_string(column.count())
                                      + " steps; all must have one length");
      for (std::int64_t step = 0; step < rows[0].count(); ++step) {
        for (std::size_t c = 0; c < rows.size(); ++c)
          copy(c, rows[c].data() + static_cast<std::size_t>(step) * bytes(c));
        writer_.append();
      }
    });
  }

  void add_item(std::int64_t first, std::int64_t count, std::uint32_t history,
                const ShapePtr& shape, double priority, const std::string& table) {
    const std::size_t part = place_of(table);
    writer_.add_item(first, count, history, shape, priority);
    parts_.push_back(part);
  }

  /// False: not all was sent before the deadline; the next call continues.
  bool insert(double deadline) {
    if (waiting_.empty() && writer_.pending_items() > 0) {
      const InsertionPtr made = writer_.take();
      const std::vector<InsertionPtr> parts = split(*made, parts_, tables_.size());
      for (std::size_t i = 0; i < parts.size(); ++i)
        if (parts[i])
          waiting_.emplace_back(parts[i], tables_[i]);
      parts_.clear();
    }
    const py::gil_scoped_release free;
    while (!waiting_.empty()) {
      if (!client_.insert(waiting_.front().first, waiting_.front().second, deadline))
        return false;
      waiting_.erase(waiting_.begin());
    }
    return true;
  }

private:
  std::size_t bytes(std::size_t column) const { return writer_.layout().columns[column].bytes; }
  void copy(std::size_t column, const std::byte* from) {
    std::memcpy(writer_.next(column).data(), from, bytes(column));
  }
  std::size_t place_of(const std::string& table);

  template <typename Use>
  void with_rows(const py::dict& values, std::size_t leading, Use use);

  Client& client_;
  Signature signature_;
  Writer writer_;
  py::function convert_; // (column's place, leading dimensions, value) -> array that fits
  std::vector<std::string> tables_{""};
  std::vector<std::size_t> parts_; // of the items not yet taken
  std::vector<std::pair<InsertionPtr, std::string>> waiting_;
};

std::size_t StepWriter::place_of(const std::string& table) {
  const auto at = std::find(tables_.begin(), tables_.end(), table);
  const auto place = static_cast<std::size_t>(at - tables_.begin());
  if (place == tables_.size())
    tables_.push_back(table);
  return place;
}

/// Opens all columns before any row is written; converts columns that do not fit.
template <typename Use>
void StepWriter::with_rows(const py::dict& values, std::size_t leading, Use use) {
  const std::vector<env::ArraySpec>& columns = signature_.columns;
  std::vector<Rows> rows(columns.size());
  std::vector<py::object> converted;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    PyObject* value = PyDict_GetItemString(values.ptr(), columns[c].name.c_str());
    if (value == nullptr)
      throw std::invalid_argument("column \"" + columns[c].name + "\" is missing; a step of "
                                  + describe(signature_) + " has a value for each");
    if (rows[c].open(value, columns[c], leading))
      continue;
    converted.push_back(convert_(c, leading, py::handle(value)));
    rows[c].close();
    if (!rows[c].open(converted.back().ptr(), columns[c], leading))
      throw std::invalid_argument("column \"" + columns[c].name + "\" could not be converted");
  }
  if (PyDict_Size(values.ptr()) != static_cast<py::ssize_t>(columns.size()))
    throw std::invalid_argument(std::to_string(PyDict_Size(values.ptr()))
                                + " columns are given and " + std::to_string(columns.size())
                                + " belong to a step of " + describe(signature_));
  use(rows);
}

/// Pairs of first row and count for each column; None: all rows of the window.
ShapePtr
shape_of(const std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>& columns) {
  auto shape = std::make_shared<ItemShape>();
  for (const auto& slices : columns) {
    std::vector<Slice>& made = shape->columns.emplace_back();
    for (const auto& [first, count] : slices)
      made.push_back({first, count});
  }
  return shape;
}

struct Shape {
  ShapePtr shape; // null: all rows
};

} // namespace

void add_writer(py::module_& module) {
  py::class_<Shape>(module, "Shape")
      .def(py::init(
          [](const std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>& columns) {
            return Shape{shape_of(columns)};
          }));
  py::class_<StepWriter>(module, "Writer")
      .def(py::init<Client&, std::uint64_t, std::int64_t, int, py::function>(),
           py::keep_alive<1, 2>())
      .def_property_readonly("rows", &StepWriter::rows)
      .def_property_readonly("kept_rows", &StepWriter::kept_rows)
      .def_property_readonly("pending_items", &StepWriter::pending_items)
      .def("append", &StepWriter::append)
      .def("extend", &StepWriter::extend)
      .def("add_item",
           [](StepWriter& writer, std::int64_t first, std::int64_t count, std::uint32_t history,
              const Shape* shape, double priority, const std::string& table) {
             writer.add_item(first, count, history, shape == nullptr ? nullptr : shape->shape,
                             priority, table);
           })
      .def("add_items",
           [](StepWriter& writer, std::int64_t begin, std::int64_t end, std::int64_t step,
              std::int64_t count, std::uint32_t history, const Shape* shape, double priority,
              const std::string& table) {
             for (std::int64_t first = begin; first < end; first += step)
               writer.add_item(first, count, history, shape == nullptr ? nullptr : shape->shape,
                               priority, table);
           })
      .def("insert", &StepWriter::insert);
}

} // namespace troupe::replay::python
