#include "actors/supervision/head_record.hpp"

#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "actors/protocol/counters.hpp"
#include "actors/protocol/messages.hpp"
#include "actors/roles/files.hpp"
#include "actors/supervision/roles.hpp"

namespace troupe::actors {

namespace {

constexpr std::int32_t kRecordVersion = 1;
constexpr std::size_t kBlock = 8192;       // a record's size is a multiple of this
constexpr std::int32_t kMostIndex = 65535; // as for a process's --index

void demand(bool held, const std::string& problem) {
  if (!held)
    throw std::runtime_error(problem);
}

void check_number(double value, const std::string& key) {
  demand(std::isfinite(value) && value >= 0,
         key + " is " + std::to_string(value) + "; it must be a number of at least 0");
}

void check_processes(const wire::HeadRecord& record, const RunConfig& config) {
  std::set<ActorKey> known;
  for (const auto& process : record.processes()) {
    const Role role = role_named(process.role());
    const std::string name = "process " + process.role() + " " + std::to_string(process.index());
    const int most = role == Role::environment ? kMostIndex + 1 : role_count(config, role);
    demand(process.index() >= 0 && process.index() < most,
           name + " has an index that is not from 0 to " + std::to_string(most - 1));
    demand(known.emplace(role, process.index()).second, name + " is listed twice");
    demand(process.process() >= 0,
           name + " has the id " + std::to_string(process.process()) + "; it must be at least 0");
  }
}

void check_record(const wire::HeadRecord& record, const RunConfig& config) {
  demand(record.version() == kRecordVersion, "version is " + std::to_string(record.version())
                                                 + "; this build reads "
                                                 + std::to_string(kRecordVersion));
  demand(record.port() >= 1 && record.port() <= 65535,
         "port is " + std::to_string(record.port()) + "; it must be from 1 to 65535");
  const auto& before = record.before();
  demand(before.environments() >= 0 && before.environments() <= kMostIndex + 1,
         "before.environments is " + std::to_string(before.environments())
             + "; it must be from 0 to " + std::to_string(kMostIndex + 1));
  check_counters(before);
  check_number(record.metrics().training_seconds(), "metrics.training_seconds");
  check_counter("taken_over", record.taken_over());
  check_processes(record, config);
}

void pad(wire::HeadRecord& record) {
  constexpr std::size_t least = 128, head = 3; // bytes: the key and a length of two bytes
  record.clear_padding();
  const std::size_t size = record.ByteSizeLong() + head;
  record.set_padding(std::string((size + least + kBlock - 1) / kBlock * kBlock - size, '\0'));
}

} // namespace

std::filesystem::path head_record_file(const std::filesystem::path& run) {
  return run / "checkpoints" / "head.state";
}

void write_head_record(const std::filesystem::path& run, const wire::HeadRecord& record) {
  const auto file = head_record_file(run);
  std::filesystem::create_directories(file.parent_path());
  wire::HeadRecord told = record;
  told.set_version(kRecordVersion);
  pad(told);
  const std::string bytes = told.SerializeAsString();
  write_reserved_file(file, std::as_bytes(std::span(bytes)));
}

void remove_head_record(const std::filesystem::path& run) {
  remove_reserved_file(head_record_file(run));
}

wire::HeadRecord parse_head_record(std::span<const std::byte> bytes, const RunConfig& config) {
  wire::HeadRecord record;
  demand(record.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
         "it is not a head record");
  check_record(record, config);
  return record;
}

wire::HeadRecord read_head_record(const std::filesystem::path& run, const RunConfig& config) {
  const auto file = head_record_file(run);
  const auto bytes = read_file(file);
  try {
    return parse_head_record(bytes, config);
  } catch (const std::exception& e) {
    throw std::runtime_error(file.string() + ": " + e.what());
  }
}

} // namespace troupe::actors
