#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/python/fork_guard.hpp"
#include "experiments/python/replay/insertion_sink.hpp"
#include "experiments/python/replay/step_values.hpp"
#include "replay/writers/sequence_items.hpp"
#include "replay/writers/writer.hpp"

namespace troupe::python {

struct StepWriterOptions {
  std::int64_t reach = 1;
  int chunk_rows = 0;
  /// Makes items automatically, for add(); without it the caller adds items.
  std::optional<replay::SequenceOptions> sequences = {};
  bool shared = false; // threads may share the writer and wait for each other; otherwise a second
                       // one is refused
};

/// A Writer that Python fills. Its items may belong to several tables. Any thread may call it with
/// the interpreter's lock; a process that was forked after the writer was made is refused.
class StepWriter {
public:
  StepWriter(InsertionSink& sink, std::uint64_t id, const StepWriterOptions& options,
             pybind11::function convert);

  std::int64_t rows() const { return end_; }
  std::int64_t kept_rows();
  std::int64_t pending_items();

  /// Append one step or several; the caller adds the items.
  void append(const pybind11::dict& values);
  void extend(const pybind11::dict& values);
  /// Adds an item for each first row in [begin, end), `step` apart; all or none. Throws
  /// std::invalid_argument if there is no such table, or as Writer::check_item() does.
  void add_items(std::int64_t begin, std::int64_t end, std::int64_t step,
                 const replay::Window& window, const replay::ShapePtr& shape, double priority,
                 const std::string& table);
  /// Sends the items. Returns false if not everything was sent before the deadline; the next call
  /// continues, also after an exception. Drops items that can never be accepted and throws
  /// std::invalid_argument.
  bool insert(double deadline);

  /// Only with `sequences`. These add one step, with `last` at the end of its episode, or several,
  /// with last[i] at the ends; they send complete items with `priority`. They return false as
  /// insert() does.
  bool add(const pybind11::dict& values, bool last, double priority, double deadline);
  bool add_many(const pybind11::dict& values, const pybind11::object& last, double priority,
                double deadline);
  /// Makes the next step the first of an episode.
  void abandon();

private:
  class Use;
  void write(std::span<const std::byte* const> columns, std::int64_t step);
  bool send(double deadline);
  std::size_t place_of(const std::string& table);

  InsertionSink& sink_;
  ForkGuard guard_;
  bool shared_;
  std::mutex mutex_; // guards the members below
  StepValues values_;
  double priority_ = 1; // of items made by add()
  replay::Writer writer_;
  std::vector<std::size_t> row_bytes_; // of each column
  std::vector<std::string> tables_{""};
  std::vector<std::size_t> parts_; // table of each item that was not yet taken
  std::deque<std::pair<replay::InsertionPtr, std::string>> waiting_;
  std::atomic<std::int64_t> end_ = 0;
};

} // namespace troupe::python
