#include "replay/python/native_client.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>

#include <pybind11/stl.h>

#include "env/wire/keys.hpp"

namespace troupe::replay::python {

namespace py = pybind11;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{500}; // for interrupts; more than two pings
constexpr double kMostSeconds = 1e9;

Deadline in(double seconds) {
  if (!(seconds >= 0))
    throw std::invalid_argument("deadline is " + std::to_string(seconds)
                                + " but must be 0 or more seconds");
  return Clock::now()
         + std::chrono::duration_cast<Clock::duration>(
             std::chrono::duration<double>(std::min(seconds, kMostSeconds)));
}

/// The next time to check for interrupts; the last interval is long enough to detect a silent
/// server.
Deadline next_look(Deadline end) {
  const Deadline now = Clock::now();
  return end - now < 2 * kLook ? end : now + kLook;
}

/// Throws Python's KeyboardInterrupt, or whatever a signal's handler raised.
void look_for_interrupts() {
  const py::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0)
    throw py::error_already_set();
}

ShardClientOptions options_of(const ClientSettings& settings) {
  ShardClientOptions options{
      .window = settings.window, .table = settings.table, .part_bytes = settings.part_bytes};
  if (!settings.shared_memory)
    options.shared_memory.reset();
  if (settings.secret_key.empty() != settings.server_key.empty())
    throw std::invalid_argument("one of secret_key and server_key is given; encryption needs both: "
                                "files of `troupe keys new`");
  if (!settings.secret_key.empty())
    options.keys = env::wire::read_client_keys(settings.secret_key, settings.server_key);
  return options;
}

} // namespace

char struct_code(env::ElementType type) {
  switch (type) {
  case env::ElementType::uint8:
    return 'B';
  case env::ElementType::float32:
    return 'f';
  case env::ElementType::float64:
    return 'd';
  case env::ElementType::int64:
    return 'l';
  }
  throw std::invalid_argument("a column of an unknown type");
}

py::buffer_info View::buffer() const {
  const std::string format(1, type);
  const py::ssize_t bytes = type == 'B' ? 1 : type == 'f' || type == 'I' ? 4 : 8;
  return {const_cast<void*>(begin),
          bytes,
          format,
          static_cast<py::ssize_t>(shape.size()),
          shape,
          strides,
          /*readonly=*/true};
}

View Part::column(std::size_t place) const {
  const ColumnPart::Column& from = part->columns.at(place);
  const env::ArraySpec& spec = signature.columns.at(place);
  View made{part, from.bytes.data(), struct_code(spec.type), {}, {}};
  made.shape.push_back(static_cast<py::ssize_t>(from.first.back()));
  made.shape.insert(made.shape.end(), spec.shape.begin(), spec.shape.end());
  auto stride = static_cast<py::ssize_t>(env::element_bytes(spec.type));
  for (std::size_t i = made.shape.size(); i-- > 0; stride *= made.shape[i])
    made.strides.insert(made.strides.begin(), stride);
  return made;
}

View Part::first(std::size_t place) const {
  const std::vector<std::uint64_t>& first = part->columns.at(place).first;
  return {part, first.data(), 'L', {static_cast<py::ssize_t>(first.size())}, {8}};
}

View Part::of_items(const std::string& what) const {
  const std::vector<SampledItem>& items = part->items;
  const auto view = [&](std::size_t offset, char type) {
    return View{part,
                reinterpret_cast<const std::byte*>(items.data()) + offset,
                type,
                {static_cast<py::ssize_t>(items.size())},
                {static_cast<py::ssize_t>(sizeof(SampledItem))}};
  };
  if (what == "key")
    return view(offsetof(SampledItem, key), 'L');
  if (what == "priority")
    return view(offsetof(SampledItem, priority), 'd');
  if (what == "probability")
    return view(offsetof(SampledItem, probability), 'd');
  if (what == "rows")
    return view(offsetof(SampledItem, rows), 'I');
  if (what == "history")
    return view(offsetof(SampledItem, history), 'I');
  if (what == "times_sampled")
    return view(offsetof(SampledItem, times_sampled), 'I');
  if (what == "table_items")
    return view(offsetof(SampledItem, table_items), 'I');
  throw std::invalid_argument("items have no " + what);
}

Client::Client(const ClientSettings& settings) : endpoint_(settings.endpoint) {
  const ShardClientOptions options = options_of(settings);
  context_.emplace();
  const Deadline deadline = in(settings.deadline);
  for (;;) {
    const Deadline look = next_look(deadline);
    try {
      client_.emplace(ShardClient::connect(*context_, settings.endpoint, look, options));
      break;
    } catch (const ShardSilence&) {
      if (look == deadline)
        throw;
    }
    look_for_interrupts();
  }
  signature_ = client_->signature();
}

template <typename Wait>
bool Client::patiently(double deadline, Wait wait) {
  const Deadline end = in(deadline);
  for (;;) {
    const Deadline look = next_look(end);
    try {
      const std::scoped_lock lock(mutex_);
      if (!client_)
        throw std::runtime_error("replay shard at " + endpoint_ + ": the client is closed");
      if (wait(*client_, look))
        return true;
    } catch (const ShardSilence&) {
      if (look == end || Clock::now() < look) // or silent for long
        throw;
    }
    if (look == end)
      return false;
    look_for_interrupts();
  }
}

bool Client::insert(const InsertionPtr& insertion, const std::string& table, double deadline) {
  return patiently(deadline, [&](ShardClient& client, Deadline until) {
    return client.insert(insertion, until, table);
  });
}

bool Client::flush(double deadline) {
  return patiently(deadline,
                   [](ShardClient& client, Deadline until) { return client.flush(until); });
}

std::size_t Client::in_flight() {
  const std::scoped_lock lock(mutex_);
  if (!client_)
    return 0;
  client_->poll();
  return client_->in_flight();
}

std::optional<std::vector<Part>> Client::sample(std::int64_t count, double deadline,
                                                double patience) {
  const auto wait_there = std::chrono::milliseconds(
      static_cast<std::int64_t>(std::clamp(patience, 0.0, kMostSeconds) * 1000));
  std::optional<ColumnBatch> batch;
  if (!patiently(deadline, [&](ShardClient& client, Deadline until) {
        batch = client.sample(count, until, wait_there);
        return batch.has_value();
      }))
    return std::nullopt;
  std::vector<Part> parts;
  for (ColumnPart& part : batch->parts)
    parts.push_back({std::make_shared<const ColumnPart>(std::move(part)), signature_});
  return parts;
}

void Client::update_priorities(std::span<const std::uint64_t> keys,
                               std::span<const double> priorities, double deadline) {
  const std::scoped_lock lock(mutex_);
  if (!client_)
    throw std::runtime_error("replay shard at " + endpoint_ + ": the client is closed");
  client_->update_priorities(keys, priorities, in(deadline));
}

void Client::set_limiter(const RateLimiterConfig& limiter, double deadline) {
  const std::scoped_lock lock(mutex_);
  if (!client_)
    throw std::runtime_error("replay shard at " + endpoint_ + ": the client is closed");
  client_->set_limiter(limiter, in(deadline));
}

ShardInfo Client::info(double deadline) {
  const std::scoped_lock lock(mutex_);
  if (!client_)
    throw std::runtime_error("replay shard at " + endpoint_ + ": the client is closed");
  return client_->info(in(deadline));
}

void Client::close() {
  const std::scoped_lock lock(mutex_);
  client_.reset();
  context_.reset();
}

namespace {

template <typename T>
std::span<const T> vector_of(const py::buffer& from, const char* code, const char* what,
                             py::buffer_info& info) {
  info = from.request();
  if (info.ndim != 1 || info.itemsize != sizeof(T) || info.strides[0] != info.itemsize
      || std::string(code).find(info.format) == std::string::npos || info.format.size() != 1)
    throw std::invalid_argument(std::string(what) + " must be a contiguous vector of "
                                + (sizeof(T) == 8 && code[0] == 'd' ? "float64" : "uint64"));
  return {static_cast<const T*>(info.ptr), static_cast<std::size_t>(info.size)};
}

py::dict config_dict(const TableConfig& config) {
  py::dict made;
  made["max_items"] = config.max_items;
  made["max_bytes"] = config.max_bytes;
  made["sampler"] = selector_name(config.sampler.kind);
  made["remover"] = selector_name(config.remover.kind);
  made["priority_exponent"] = config.sampler.exponent;
  made["max_times_sampled"] = config.max_times_sampled;
  made["insert_at_maximum"] = config.insert_at_maximum;
  made["compression"] = compression_name(config.compression);
  made["limiter"] = limiter_name(config.limiter.kind);
  made["min_items"] = config.limiter.min_items;
  made["samples_per_insert"] = config.limiter.samples_per_insert;
  made["error_buffer"] = config.limiter.error_buffer;
  made["queue_items"] = config.limiter.queue_items;
  return made;
}

py::dict info_dict(const ShardInfo& info) {
  py::dict made;
  made["protocol"] = info.protocol;
  made["tables"] = info.tables;
  made["items"] = info.stats.items;
  made["bytes"] = info.stats.bytes;
  made["inserted"] = info.stats.inserted;
  made["sampled"] = info.stats.sampled;
  made["updated_priorities"] = info.stats.updated_priorities;
  made["late_priorities"] = info.stats.late_priorities;
  made["chunks_on_disk"] = info.stats.chunks_on_disk;
  made["disk_bytes"] = info.stats.disk_bytes;
  made["failed_spills"] = info.stats.failed_spills;
  made["waiting"] = info.why_waiting;
  made["config"] = info.config ? py::object(config_dict(*info.config)) : py::object(py::none());
  return made;
}

py::list columns_list(const Signature& signature) {
  py::list made;
  for (const env::ArraySpec& column : signature.columns)
    made.append(py::make_tuple(column.name, env::element_name(column.type),
                               py::tuple(py::cast(column.shape))));
  return made;
}

} // namespace

void add_client(py::module_& module) {
  using Free = py::call_guard<py::gil_scoped_release>;
  py::class_<View>(module, "View", py::buffer_protocol()).def_buffer(&View::buffer);
  py::class_<Part>(module, "Part")
      .def_property_readonly("items", [](const Part& part) { return part.part->items.size(); })
      .def("column", &Part::column)
      .def("first", &Part::first)
      .def("of_items", &Part::of_items);
  py::class_<Client>(module, "Client")
      .def(py::init([](std::string endpoint, std::string table, double deadline,
                       std::string secret_key, std::string server_key, bool shared_memory,
                       std::size_t window, std::size_t part_bytes) {
             const py::gil_scoped_release free;
             return std::make_unique<Client>(ClientSettings{
                 std::move(endpoint), std::move(table), deadline, std::move(secret_key),
                 std::move(server_key), shared_memory, window, part_bytes});
           }),
           py::kw_only(), py::arg("endpoint"), py::arg("table"), py::arg("deadline"),
           py::arg("secret_key"), py::arg("server_key"), py::arg("shared_memory"),
           py::arg("window"), py::arg("part_bytes"))
      .def_property_readonly("columns",
                             [](const Client& client) { return columns_list(client.signature()); })
      .def_property_readonly("items_are",
                             [](const Client& client) { return client.signature().items; })
      .def("sample", &Client::sample, Free())
      .def("flush", &Client::flush, Free())
      .def("in_flight", &Client::in_flight, Free())
      .def("close", &Client::close, Free())
      .def("info",
           [](Client& client, double deadline) {
             ShardInfo info;
             {
               const py::gil_scoped_release free;
               info = client.info(deadline);
             }
             return info_dict(info);
           })
      .def("update_priorities",
           [](Client& client, const py::buffer& keys, const py::buffer& priorities,
              double deadline) {
             py::buffer_info key_info;
             py::buffer_info priority_info;
             const auto k = vector_of<std::uint64_t>(keys, "LQ", "keys", key_info);
             const auto p = vector_of<double>(priorities, "d", "priorities", priority_info);
             const py::gil_scoped_release free;
             client.update_priorities(k, p, deadline);
           })
      .def("set_limiter", [](Client& client, const std::string& kind, std::int64_t min_items,
                             double samples_per_insert, double error_buffer,
                             std::int64_t queue_items, double deadline) {
        const py::gil_scoped_release free;
        client.set_limiter(
            {limiter_named(kind), min_items, samples_per_insert, error_buffer, queue_items},
            deadline);
      });
}

} // namespace troupe::replay::python
