#include "experiments/python/replay/step_writer.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "experiments/python/native.hpp"
#include "experiments/python/released_lock.hpp"
#include "replay/chunks/insertion_split.hpp"
#include "replay/table/selector.hpp"

namespace py = pybind11;

namespace troupe::python {
namespace {

constexpr std::size_t kBytesWithLock = 1 << 15; // at most this many are copied while holding the
                                                // interpreter's lock

replay::Writer writer_of(const replay::Signature& signature, std::uint64_t id,
                         const StepWriterOptions& options, const double& priority) {
  if (!options.sequences)
    return {signature, id, {.chunk_rows = options.chunk_rows, .reach = options.reach}};
  return replay::sequence_writer(
      signature, id, *options.sequences,
      [&priority](const replay::Writer&, const replay::Window&) { return priority; });
}

} // namespace

/// Holds the writer for one call.
class StepWriter::Use {
public:
  explicit Use(StepWriter& writer) : lock_(writer.mutex_, std::defer_lock) {
    writer.guard_.check("writer");
    if (lock_.try_lock())
      return;
    if (!writer.shared_)
      throw std::runtime_error("the writer is in use by another thread; a writer serves one stream "
                               "of steps, so give each thread its own");
    const ReleasedLock released; // the other thread may need it
    lock_.lock();
  }

private:
  std::unique_lock<std::mutex> lock_;
};

StepWriter::StepWriter(InsertionSink& sink, std::uint64_t id, const StepWriterOptions& options,
                       py::function convert)
    : sink_(sink),
      shared_(options.shared),
      values_(sink.signature(), std::move(convert)),
      writer_(writer_of(*sink.signature(), id, options, priority_)) {
  for (const replay::RowLayout::Column& column : writer_.layout().columns)
    row_bytes_.push_back(column.bytes);
}

std::int64_t StepWriter::kept_rows() {
  const Use use(*this);
  return writer_.kept_rows();
}

std::int64_t StepWriter::pending_items() {
  const Use use(*this);
  return writer_.pending_items();
}

/// Copies row `step` of the columns into the writer's next row.
void StepWriter::write(std::span<const std::byte* const> columns, std::int64_t step) {
  std::byte* row = writer_.next(0).data(); // the columns begin at the first one
  for (std::size_t c = 0; c < columns.size(); ++c)
    std::memcpy(row + writer_.layout().columns[c].offset,
                columns[c] + static_cast<std::size_t>(step) * row_bytes_[c], row_bytes_[c]);
}

void StepWriter::append(const py::dict& values) {
  const Use use(*this);
  write(values_.step(values), 0);
  writer_.append();
  end_ = writer_.rows();
}

void StepWriter::extend(const py::dict& values) {
  const Use use(*this);
  std::int64_t count = 0;
  const auto columns = values_.steps(values, count);
  const ReleasedLock released;
  for (std::int64_t step = 0; step < count; ++step) {
    write(columns, step);
    writer_.append();
  }
  end_ = writer_.rows();
}

std::size_t StepWriter::place_of(const std::string& table) {
  const auto at = std::find(tables_.begin(), tables_.end(), table);
  const auto place = static_cast<std::size_t>(at - tables_.begin());
  if (place == tables_.size()) {
    sink_.check_table(table);
    tables_.push_back(table);
  }
  return place;
}

void StepWriter::add_items(std::int64_t begin, std::int64_t end, std::int64_t step,
                           const replay::Window& window, const replay::ShapePtr& shape,
                           double priority, const std::string& table) {
  const Use use(*this);
  const std::size_t part = place_of(table);
  if (begin >= end)
    return;
  const auto check = [&](std::int64_t first) {
    writer_.check_item(first, window.count, window.history, shape.get(), priority);
  };
  check(begin); // so `begin` is not negative
  const std::int64_t items = (end - begin - 1) / step + 1;
  check(begin + (items - 1) * step);
  for (std::int64_t i = 0; i < items; ++i) {
    writer_.add_item(begin + i * step, window.count, window.history, shape, priority);
    parts_.push_back(part);
  }
}

bool StepWriter::send(double deadline) {
  if (writer_.pending_items() > 0) {
    const replay::InsertionPtr made = writer_.take();
    if (tables_.size() == 1) {
      waiting_.emplace_back(made, "");
    } else {
      const auto parts = replay::split(*made, parts_, tables_.size());
      for (std::size_t i = 0; i < parts.size(); ++i)
        if (parts[i])
          waiting_.emplace_back(parts[i], tables_[i]);
    }
    parts_.clear();
  }
  while (!waiting_.empty()) {
    try {
      if (!sink_.insert(waiting_.front().first, waiting_.front().second, deadline))
        return false;
    } catch (const std::invalid_argument&) { // or it would hold up all later ones
      waiting_.pop_front();
      throw;
    }
    waiting_.pop_front();
  }
  return true;
}

bool StepWriter::insert(double deadline) {
  const Use use(*this);
  return send(deadline);
}

bool StepWriter::add(const py::dict& values, bool last, double priority, double deadline) {
  if (!replay::valid_priority(priority))
    replay::check_priority(priority, "a new item");
  const Use use(*this);
  write(values_.step(values), 0);
  priority_ = priority;
  writer_.append_step(last);
  end_ = writer_.rows();
  return send(deadline);
}

bool StepWriter::add_many(const py::dict& values, const py::object& last, double priority,
                          double deadline) {
  if (!replay::valid_priority(priority))
    replay::check_priority(priority, "a new item");
  const Use use(*this);
  std::int64_t count = 0;
  const auto columns = values_.steps(values, count);
  using Ends = py::array_t<bool, py::array::c_style | py::array::forcecast>;
  const Ends ends = last.is_none() ? Ends(0) : Ends(last);
  if (!last.is_none() && (ends.ndim() != 1 || ends.shape(0) != count))
    throw std::invalid_argument("last has " + std::to_string(ends.size()) + " values; it must have "
                                + std::to_string(count) + ", one for each step");
  const bool* const end = last.is_none() ? nullptr : ends.data();
  const auto store = [&] {
    for (std::int64_t step = 0; step < count; ++step) {
      write(columns, step);
      writer_.append_step(end != nullptr && end[step]);
    }
  };
  priority_ = priority;
  if (static_cast<std::size_t>(count) * writer_.layout().row_bytes > kBytesWithLock) {
    const ReleasedLock released;
    store();
  } else {
    store();
  }
  end_ = writer_.rows();
  return send(deadline);
}

void StepWriter::abandon() {
  const Use use(*this);
  writer_.abandon();
}

namespace {

struct Shape {
  replay::ShapePtr shape; // null: all rows
};

/// Parses pairs of first row and count for each column; None means all rows of the window.
replay::ShapePtr
shape_of(const std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>& columns) {
  auto shape = std::make_shared<replay::ItemShape>();
  for (const auto& slices : columns) {
    std::vector<replay::Slice>& made = shape->columns.emplace_back();
    for (const auto& [first, count] : slices)
      made.push_back({first, count});
  }
  return shape;
}

replay::EpisodeEnd end_named(const std::string& name) {
  if (name == "pad")
    return replay::EpisodeEnd::pad;
  if (name == "shorten")
    return replay::EpisodeEnd::shorten;
  if (name == "shift")
    return replay::EpisodeEnd::shift;
  if (name == "drop")
    return replay::EpisodeEnd::drop;
  throw std::invalid_argument("end is \"" + name
                              + "\"; it must be \"pad\", \"shorten\", \"shift\" or \"drop\"");
}

} // namespace

void add_replay_writers(py::module_& module) {
  py::class_<Shape>(module, "ReplayShape")
      .def(py::init(
          [](const std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>& columns) {
            return Shape{shape_of(columns)};
          }));
  py::class_<StepWriter>(module, "ReplayWriter")
      .def(py::init([](InsertionSink& sink, std::uint64_t id, std::int64_t reach, int chunk_rows,
                       py::function convert) {
             return std::make_unique<StepWriter>(
                 sink, id, StepWriterOptions{.reach = reach, .chunk_rows = chunk_rows},
                 std::move(convert));
           }),
           py::keep_alive<1, 2>())
      .def_static(
          "of_sequences",
          [](InsertionSink& sink, std::uint64_t id, std::int64_t length, std::int64_t period,
             std::int64_t burn_in, const std::string& end, int chunk_rows, py::function convert) {
            return std::make_unique<StepWriter>(
                sink, id,
                StepWriterOptions{.sequences = replay::SequenceOptions{.length = length,
                                                                       .period = period,
                                                                       .burn_in = burn_in,
                                                                       .end = end_named(end),
                                                                       .chunk_rows = chunk_rows},
                                  .shared = true},
                std::move(convert));
          },
          py::keep_alive<0, 1>())
      .def_property_readonly("rows", &StepWriter::rows)
      .def_property_readonly("kept_rows", &StepWriter::kept_rows)
      .def_property_readonly("pending_items", &StepWriter::pending_items)
      .def("append", &StepWriter::append)
      .def("extend", &StepWriter::extend)
      .def("add_items",
           [](StepWriter& writer, std::int64_t begin, std::int64_t end, std::int64_t step,
              std::int64_t count, std::uint32_t history, const Shape* shape, double priority,
              const std::string& table) {
             writer.add_items(begin, end, step, {.count = count, .history = history},
                              shape == nullptr ? nullptr : shape->shape, priority, table);
           })
      .def("insert", &StepWriter::insert)
      .def("add", &StepWriter::add)
      .def("add_many", &StepWriter::add_many)
      .def("abandon", &StepWriter::abandon);
}

} // namespace troupe::python
