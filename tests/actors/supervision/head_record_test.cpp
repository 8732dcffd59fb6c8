#include "actors/supervision/head_record.hpp"

#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "tests/doctest_torch.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

namespace troupe::actors {
namespace {

RunConfig two_shards() {
  RunConfig config;
  config.replay.shards = 2;
  return config;
}

wire::HeadRecord sound_record() {
  wire::HeadRecord record;
  record.set_epoch(7);
  record.set_port(4242);
  record.mutable_before()->set_updates(100);
  record.mutable_metrics()->set_episodes(3);
  auto& process = *record.add_processes();
  process.set_role("replay");
  process.set_index(1);
  process.set_incarnation(2);
  process.set_endpoint("tcp://127.0.0.1:1");
  return record;
}

std::string problem_of(const std::filesystem::path& run) {
  return error_of([&] { read_head_record(run, two_shards()); });
}

TEST_CASE("A successor reads the head's latest record") {
  const TemporaryFolder folder;
  auto record = sound_record();
  write_head_record(folder.path(), record);
  record.mutable_before()->set_updates(200);
  write_head_record(folder.path(), record);
  const auto read = read_head_record(folder.path(), two_shards());
  CHECK(read.epoch() == 7);
  CHECK(read.before().updates() == 200);
  REQUIRE(read.processes_size() == 1);
  CHECK(read.processes(0).endpoint() == "tcp://127.0.0.1:1");
}

TEST_CASE("A record keeps its file size while its contents grow slightly") {
  const TemporaryFolder folder;
  const auto size = [&] { return std::filesystem::file_size(head_record_file(folder.path())); };
  auto record = sound_record();
  write_head_record(folder.path(), record);
  const auto first = size();
  std::uintmax_t last = first;
  int changes = 0;
  for (int i = 0; i < 2000; ++i) {
    record.mutable_metrics()->add_processes()->set_processor_seconds(1 + i);
    write_head_record(folder.path(), record);
    changes += std::exchange(last, size()) == last ? 0 : 1;
    const auto read = read_head_record(folder.path(), two_shards());
    REQUIRE(read.metrics().processes_size() == i + 1);
    REQUIRE(last - first == changes * std::uintmax_t{8192});
  }
  CHECK(changes > 0);
  CHECK(changes < 10);
  remove_head_record(folder.path());
  CHECK(std::filesystem::is_empty(head_record_file(folder.path()).parent_path()));
}

TEST_CASE(
    "A record with a value out of range is refused, and the error names the value and its rule") {
  struct Row {
    std::function<void(wire::HeadRecord&)> spoil;
    std::string says;
  };
  for (const Row& row :
       {Row{[](auto& r) { r.set_port(0); }, "port is 0; it must be from 1 to 65535"},
        Row{[](auto& r) { r.mutable_processes(0)->set_index(2); },
            "process replay 2 has an index that is not from 0 to 1"},
        Row{[](auto& r) { r.mutable_processes(0)->set_role("king"); }, "king"},
        Row{[](auto& r) { *r.add_processes() = r.processes(0); },
            "process replay 1 is listed twice"},
        Row{[](auto& r) { r.mutable_processes(0)->set_process(-1); }, "the id -1"},
        Row{[](auto& r) { r.mutable_before()->set_updates(-1); },
            "updates is -1; it must be from 0 to 281474976710656"},
        Row{[](auto& r) { r.mutable_before()->set_samples(INT64_MAX); },
            "samples is 9223372036854775807; it must be from 0 to 281474976710656"},
        Row{[](auto& r) {
              r.mutable_metrics()->set_training_seconds(std::numeric_limits<double>::quiet_NaN());
            },
            "metrics.training_seconds is nan; it must be a number of at least 0"}}) {
    const TemporaryFolder folder;
    auto record = sound_record();
    row.spoil(record);
    write_head_record(folder.path(), record);
    const std::string problem = problem_of(folder.path());
    INFO(problem);
    CHECK(problem.find(head_record_file(folder.path()).string()) != std::string::npos);
    CHECK(problem.find(row.says) != std::string::npos);
  }
}

TEST_CASE("A damaged or missing record is refused") {
  const TemporaryFolder folder;
  CHECK_FALSE(problem_of(folder.path()).empty());
  write_head_record(folder.path(), sound_record());
  CHECK(problem_of(folder.path()).empty());
  {
    std::fstream file(head_record_file(folder.path()), std::ios::in | std::ios::out);
    file.seekp(3);
    file.put('\x7f');
  }
  CHECK(problem_of(folder.path()).find("checksum") != std::string::npos);
}

} // namespace
} // namespace troupe::actors
