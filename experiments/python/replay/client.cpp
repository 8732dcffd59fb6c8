#include "experiments/python/replay/client.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>

#include <pybind11/stl.h>

#include "env/text/joined.hpp"
#include "env/wire/keys.hpp"
#include "experiments/python/deadlines.hpp"
#include "experiments/python/native.hpp"
#include "experiments/python/released_lock.hpp"
#include "experiments/python/replay/replay_info.hpp"

namespace py = pybind11;

namespace troupe::python {
namespace {

using replay::Deadline;
using replay::ShardClient;

replay::ShardClientOptions options_of(const ClientSettings& settings) {
  replay::ShardClientOptions options{
      .window = settings.window, .table = settings.table, .part_bytes = settings.part_bytes};
  if (!settings.shared_memory)
    options.shared_memory.reset();
  if (settings.secret_key.empty() != settings.server_key.empty())
    throw std::invalid_argument("only one of secret_key and server_key is given; encryption needs "
                                "both: files of `troupe keys new`");
  if (!settings.secret_key.empty())
    options.keys = env::wire::read_client_keys(settings.secret_key, settings.server_key);
  return options;
}

} // namespace

ReplayClient::ReplayClient(const ClientSettings& settings) : endpoint_(settings.endpoint) {
  const replay::ShardClientOptions options = options_of(settings);
  const Deadline deadline = deadline_in(settings.deadline);
  context_ = std::make_unique<env::wire::Context>();
  for (;;) {
    const Deadline look = next_look(deadline);
    try {
      const ReleasedLock released;
      client_ = std::make_unique<ShardClient>(
          ShardClient::connect(*context_, settings.endpoint, look, options));
      break;
    } catch (const replay::ShardSilence&) {
      if (look == deadline)
        throw;
    }
    look_for_interrupts();
  }
  signature_ = std::make_shared<const replay::Signature>(client_->signature());
}

ReplayClient::~ReplayClient() {
  if (!guard_.in_fork())
    return;
  // ZeroMQ's threads do not exist in a fork, and closing its sockets would wait for them.
  static_cast<void>(client_.release());
  static_cast<void>(context_.release());
}

/// Call it with the mutex held.
ShardClient& ReplayClient::open() {
  if (!client_)
    throw std::runtime_error("replay shard at " + endpoint_ + ": the client is closed");
  return *client_;
}

template <typename Wait>
bool ReplayClient::patiently(double deadline, Wait wait) {
  guard_.check("client");
  const Deadline end = deadline_in(deadline);
  for (;;) {
    const Deadline look = next_look(end);
    try {
      const ReleasedLock released;
      const std::scoped_lock lock(mutex_);
      if (wait(open(), look))
        return true;
    } catch (const replay::ShardSilence&) {
      if (look == end || Clock::now() < look) // or it has been silent for too long
        throw;
    }
    if (look == end)
      return false;
    look_for_interrupts();
  }
}

void ReplayClient::check_table(const std::string& table) {
  constexpr double kSeconds = 60;
  const std::vector<std::string> tables = info(kSeconds).tables;
  if (std::find(tables.begin(), tables.end(), table) != tables.end())
    return;
  throw std::invalid_argument("there is no table \"" + table + "\" at " + endpoint_ + "; it has "
                              + env::joined(tables));
}

bool ReplayClient::insert(const replay::InsertionPtr& insertion, const std::string& table,
                          double deadline) {
  return patiently(deadline, [&](ShardClient& client, Deadline until) {
    return client.insert(insertion, until, table);
  });
}

bool ReplayClient::flush(double deadline) {
  return patiently(deadline,
                   [](ShardClient& client, Deadline until) { return client.flush(until); });
}

std::size_t ReplayClient::in_flight() {
  guard_.check("client");
  const ReleasedLock released;
  const std::scoped_lock lock(mutex_);
  if (!client_)
    return 0;
  client_->poll();
  return client_->in_flight();
}

std::optional<std::vector<ReplayPart>> ReplayClient::sample(std::int64_t count, double deadline,
                                                            double patience) {
  const auto wait_there = std::chrono::milliseconds(
      static_cast<std::int64_t>(std::clamp(patience, 0.0, kMostSeconds) * 1000));
  std::optional<replay::ColumnBatch> batch;
  if (!patiently(deadline, [&](ShardClient& client, Deadline until) {
        batch = client.sample(count, until, wait_there);
        return batch.has_value();
      }))
    return std::nullopt;
  std::vector<ReplayPart> parts;
  for (replay::ColumnPart& part : batch->parts)
    parts.emplace_back(signature_, std::move(part));
  return parts;
}

void ReplayClient::update_priorities(std::span<const std::uint64_t> keys,
                                     std::span<const double> priorities, double deadline) {
  guard_.check("client");
  const ReleasedLock released;
  const std::scoped_lock lock(mutex_);
  open().update_priorities(keys, priorities, deadline_in(deadline));
}

void ReplayClient::set_limiter(const replay::RateLimiterConfig& limiter, double deadline) {
  guard_.check("client");
  const ReleasedLock released;
  const std::scoped_lock lock(mutex_);
  open().set_limiter(limiter, deadline_in(deadline));
}

replay::ShardInfo ReplayClient::info(double deadline) {
  guard_.check("client");
  const ReleasedLock released;
  const std::scoped_lock lock(mutex_);
  return open().info(deadline_in(deadline));
}

void ReplayClient::close() {
  guard_.check("client");
  const ReleasedLock released;
  const std::scoped_lock lock(mutex_);
  client_.reset();
  context_.reset();
}

void add_replay_client(py::module_& module) {
  py::register_exception<replay::ShardSilence>(module, "ShardSilent", PyExc_ConnectionError);
  py::class_<ReplayClient, InsertionSink>(module, "ReplayClient")
      .def(py::init([](std::string endpoint, std::string table, double deadline,
                       std::string secret_key, std::string server_key, bool shared_memory,
                       std::size_t window, std::size_t part_bytes) {
             return std::make_unique<ReplayClient>(ClientSettings{
                 std::move(endpoint), std::move(table), deadline, std::move(secret_key),
                 std::move(server_key), shared_memory, window, part_bytes});
           }),
           py::kw_only(), py::arg("endpoint"), py::arg("table"), py::arg("deadline"),
           py::arg("secret_key"), py::arg("server_key"), py::arg("shared_memory"),
           py::arg("window"), py::arg("part_bytes"))
      .def("sample", &ReplayClient::sample)
      .def("flush", &ReplayClient::flush)
      .def("in_flight", &ReplayClient::in_flight)
      .def("close", &ReplayClient::close)
      .def("info",
           [](ReplayClient& client, double deadline) { return info_dict(client.info(deadline)); })
      .def("update_priorities",
           [](ReplayClient& client, const py::object& keys, const py::object& priorities,
              double deadline) {
             client.update_priorities(numbers_of<std::uint64_t>(keys, "keys"),
                                      numbers_of<double>(priorities, "priorities"), deadline);
           })
      .def("set_limiter", [](ReplayClient& client, const std::string& kind,
                             std::int64_t minimum_items, double samples_per_insert,
                             double error_buffer, std::int64_t queue_items, double deadline) {
        client.set_limiter({replay::limiter_named(kind), minimum_items, samples_per_insert,
                            error_buffer, queue_items},
                           deadline);
      });
}

} // namespace troupe::python
