#include "experiments/python/replay/table.hpp"

#include <fcntl.h>
#include <pybind11/stl.h>
#include <stdlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <utility>

#include "experiments/config/replay_tables.hpp"
#include "experiments/python/config_mistakes.hpp"
#include "experiments/python/deadlines.hpp"
#include "experiments/python/native.hpp"
#include "experiments/python/released_lock.hpp"
#include "experiments/python/replay/replay_info.hpp"
#include "replay/batch/gather_columns.hpp"
#include "replay/storage/checkpoint_names.hpp"
#include "replay/storage/storage_error.hpp"
#include "replay/table/table_checkpoint.hpp"

namespace fs = std::filesystem;
namespace py = pybind11;

namespace troupe::python {
namespace {

constexpr std::size_t kMostSizes = 16; // distinct sizes of blocks that are kept

replay::HostedTable configured(const std::vector<std::string>& columns,
                               const std::vector<std::string>& assignments) {
  try {
    return experiments::hosted_table(experiments::replay_table_of_keys(columns, assignments));
  } catch (const experiments::ConfigError& error) {
    throw_all(error);
  }
}

/// The table gives its store to the shard itself, because clear() needs the store again.
replay::HostedTable without_store(replay::HostedTable table) {
  table.spill = {};
  return table;
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + RecycledBlocks::kAlignment - 1) / RecycledBlocks::kAlignment
         * RecycledBlocks::kAlignment;
}

/// Rounds up by at most an eighth, so that similar sizes share blocks.
std::size_t rounded_up(std::size_t bytes) {
  const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes) / 8, 4096);
  return (bytes + step - 1) / step * step;
}

/// An empty folder next to `place`, which is removed with this object.
class FolderBeside {
public:
  explicit FolderBeside(const fs::path& place) : path_(place.string() + ".XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr)
      throw replay::StorageError::of_system(errno,
                                            "cannot create a folder next to " + place.string());
  }
  ~FolderBeside() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  FolderBeside(const FolderBeside&) = delete;
  FolderBeside& operator=(const FolderBeside&) = delete;

  fs::path operator/(const char* name) const { return fs::path(path_) / name; }

private:
  std::string path_;
};

} // namespace

/// A call that the limiter may block.
struct ReplayTable::Request {
  const std::thread::id owner = std::this_thread::get_id();
  bool handing_in = true; // the owner is still in the call that submits it; only the owner uses
                          // this and at_once
  bool at_once = false;   // finished during that call
  bool finished = false;
  std::string refusal; // "": the request was served
  std::vector<replay::Item> items;
};

ReplayTable::ReplayTable(const std::vector<std::string>& columns,
                         const std::vector<std::string>& assignments)
    : configured_(configured(columns, assignments)),
      signature_(std::make_shared<const replay::Signature>(configured_.signature)),
      layout_(std::make_shared<const replay::RowLayout>(*signature_)),
      shard_(without_store(configured_)) {
  if (configured_.spill.folder.empty())
    return;
  store_ = std::make_shared<replay::SegmentStore>(configured_.spill);
  shard_.with_table([&](replay::Table& table) { table.spill_to(store_); });
}

void ReplayTable::finish(Request& request, std::string refusal) {
  const std::scoped_lock lock(mutex_);
  request.refusal = std::move(refusal);
  request.finished = true;
  if (std::this_thread::get_id() == request.owner)
    request.at_once = request.handing_in;
  answered_.notify_all();
}

/// Waits until the request is served or `end` has passed. Returns why it was not served, "" if it
/// was.
std::string ReplayTable::wait_for(Request& request, replay::Deadline end) {
  const ReleasedLock released;
  std::unique_lock lock(mutex_);
  if (answered_.wait_until(lock, end, [&] { return request.finished; }))
    return request.refusal;
  lock.unlock();
  shard_.tick(Clock::now()); // refuses the request unless another thread has just served it
  lock.lock();
  return request.refusal;
}

void ReplayTable::check_table(const std::string& table) {
  if (table != configured_.name)
    throw std::invalid_argument("there is no table \"" + table
                                + "\" beside a table of this process; leave it out");
}

bool ReplayTable::insert(const replay::InsertionPtr& insertion, const std::string&,
                         double deadline) {
  guard_.check("table");
  const replay::Deadline end = deadline_in(deadline);
  for (;;) {
    const replay::Deadline look = next_look(end);
    Request request;
    if (!shard_.insert(
            insertion, [&] { finish(request, ""); },
            {.deadline = look, .refused = [&](const std::string& why) { finish(request, why); }}))
      throw std::runtime_error("too many insertions are already waiting for the table's limiter");
    request.handing_in = false;
    if (request.at_once || wait_for(request, look).empty())
      return true;
    if (look == end)
      return false;
    look_for_interrupts();
  }
}

ReplayPart ReplayTable::sample(std::int64_t count, double deadline) {
  guard_.check("table");
  const replay::Deadline end = deadline_in(deadline);
  for (;;) {
    const replay::Deadline look = next_look(end);
    Request request;
    {
      const ReleasedLock released;
      shard_.sample(
          count,
          [&](std::vector<replay::Item> items) {
            request.items = std::move(items);
            finish(request, "");
          },
          {.deadline = look, .refused = [&](const std::string& why) { finish(request, why); }});
      request.handing_in = false;
      if (request.at_once && request.refusal.empty())
        return part_of(request.items);
    }
    if (request.at_once) // such a sample is never possible
      throw std::invalid_argument(request.refusal);
    const std::string why = wait_for(request, look);
    if (why.empty()) {
      const ReleasedLock released;
      return part_of(request.items);
    }
    if (look == end) {
      PyErr_SetString(PyExc_TimeoutError,
                      ("no sample of " + std::to_string(count) + " items: " + why).c_str());
      throw py::error_already_set();
    }
    look_for_interrupts();
  }
}

std::shared_ptr<std::byte> ReplayTable::take_block(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (blocks_.size() >= kMostSizes && !blocks_.contains(bytes))
    blocks_.clear();
  return blocks_.try_emplace(bytes, bytes).first->second.take();
}

/// Sets where each item's rows of a column begin. Returns the total number of rows.
std::size_t ReplayTable::count_rows(std::span<const replay::Item> items, std::size_t place,
                                    bool whole_and_equal, ReplayPart::Column& column) {
  const auto rows = [place](const replay::Item& item) {
    return replay::rows_shown(item.shape.get(), place, item.rows);
  };
  column.rows = rows(items.front());
  if (whole_and_equal || std::all_of(items.begin(), items.end(), [&](const replay::Item& item) {
        return rows(item) == column.rows;
      }))
    return items.size() * column.rows;
  column.first.push_back(0);
  for (const replay::Item& item : items)
    column.first.push_back(column.first.back() + rows(item));
  return column.first.back();
}

/// Call it without the interpreter's lock.
ReplayPart ReplayTable::part_of(std::span<const replay::Item> items) {
  const bool whole_and_equal =
      std::all_of(items.begin(), items.end(), [&](const replay::Item& item) {
        return !item.shape && item.rows == items.front().rows;
      });
  const std::size_t columns = layout_->columns.size();
  std::vector<ReplayPart::Column> made(columns);
  std::vector<std::byte*> out(columns);
  std::size_t bytes = aligned(items.size() * sizeof(replay::SampledItem));
  std::vector<std::size_t> begins(columns);
  for (std::size_t c = 0; c < columns; ++c) {
    begins[c] = bytes;
    bytes += aligned(count_rows(items, c, whole_and_equal, made[c]) * layout_->columns[c].bytes);
  }
  std::shared_ptr<std::byte> block = take_block(rounded_up(bytes));
  for (std::size_t c = 0; c < columns; ++c)
    out[c] = made[c].bytes = block.get() + begins[c];
  replay::gather_columns(*layout_, items, out);
  auto* records = reinterpret_cast<replay::SampledItem*>(block.get());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const replay::Item& item = items[i];
    new (records + i)
        replay::SampledItem{item.key,     item.priority,      item.probability, item.rows,
                            item.history, item.times_sampled, item.table_items};
  }
  return {signature_, std::move(block), {records, items.size()}, std::move(made)};
}

void ReplayTable::update_priorities(std::span<const std::uint64_t> keys,
                                    std::span<const double> priorities) {
  guard_.check("table");
  shard_.with_table([&](replay::Table& table) { table.update_priorities(keys, priorities); });
}

void ReplayTable::set_limiter(const replay::RateLimiterConfig& limiter) {
  guard_.check("table");
  shard_.set_limiter(limiter);
}

std::int64_t ReplayTable::items() {
  guard_.check("table");
  std::int64_t items = 0;
  shard_.with_table([&](replay::Table& table) { items = table.stats().items; });
  return items;
}

replay::ShardInfo ReplayTable::info() {
  guard_.check("table");
  const replay::ShardReport report = shard_.report();
  return {.tables = {configured_.name},
          .config = report.config,
          .stats = report.stats,
          .why_waiting = report.why_waiting};
}

void ReplayTable::save(const std::string& folder) {
  guard_.check("table");
  const ReleasedLock released;
  const std::scoped_lock lock(saving_);
  replay::TableSnapshot snapshot;
  shard_.with_table([&](replay::Table& table) { snapshot = table.snapshot(); });
  fs::path place(folder);
  if (!place.has_filename()) // a slash at the end: temporary folders are named after the folder
    place = place.parent_path();
  if (!fs::exists(fs::symlink_status(place))) {
    replay::write_checkpoint(snapshot, place);
    return;
  }
  if (!fs::exists(place / replay::kManifestName))
    throw std::invalid_argument(folder + " exists and is not a saved table; name another folder");
  const FolderBeside beside(place);
  const fs::path fresh = beside / "table";
  replay::write_checkpoint(snapshot, fresh);
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) != 0)
    throw replay::StorageError::of_system(errno, "cannot put the new table in place of " + folder);
} // removes the previous one, which is now `fresh`

std::string ReplayTable::load(const std::string& folder, bool accept_other_configuration) {
  guard_.check("table");
  const ReleasedLock released;
  std::string difference;
  shard_.with_table([&](replay::Table& table) {
    difference =
        table.load(folder, accept_other_configuration ? replay::Table::ConfigChange::accept
                                                      : replay::Table::ConfigChange::refuse);
  });
  return difference;
}

void ReplayTable::clear() {
  guard_.check("table");
  const ReleasedLock released;
  shard_.with_table([&](replay::Table& table) {
    table = replay::Table(configured_.config, *signature_, configured_.seed);
    if (store_)
      table.spill_to(store_);
  });
}

void add_replay_table(py::module_& module) {
  py::class_<ReplayTable, InsertionSink>(module, "ReplayTable")
      .def(py::init<const std::vector<std::string>&, const std::vector<std::string>&>())
      .def("sample", &ReplayTable::sample)
      .def("update_priorities",
           [](ReplayTable& table, const py::object& keys, const py::object& priorities) {
             table.update_priorities(numbers_of<std::uint64_t>(keys, "keys"),
                                     numbers_of<double>(priorities, "priorities"));
           })
      .def("set_limiter",
           [](ReplayTable& table, const std::string& kind, std::int64_t minimum_items,
              double samples_per_insert, double error_buffer, std::int64_t queue_items) {
             table.set_limiter({replay::limiter_named(kind), minimum_items, samples_per_insert,
                                error_buffer, queue_items});
           })
      .def("items", &ReplayTable::items)
      .def("info", [](ReplayTable& table) { return info_dict(table.info()); })
      .def("save", &ReplayTable::save)
      .def("load", &ReplayTable::load)
      .def("clear", &ReplayTable::clear);
}

} // namespace troupe::python
