// libFuzzer target of the record that a head leaves for its successor.
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "actors/run/metrics_actor.hpp"
#include "actors/supervision/head_record.hpp"
#include "tests/fuzz_seeds.hpp"

std::vector<std::string> troupe::fuzz_seeds() {
  using namespace troupe::actors;
  wire::HeadRecord empty;
  empty.set_version(1);
  empty.set_port(4242);
  wire::HeadRecord record = empty;
  record.set_epoch(7);
  record.mutable_before()->set_updates(100);
  record.mutable_before()->set_environments(3);
  auto& metrics = *record.mutable_metrics();
  metrics.set_episodes(3);
  metrics.add_environments()->set_agent_steps(1000);
  metrics.add_learners()->set_updates(120);
  metrics.add_shards()->mutable_stats()->set_sampled(900);
  metrics.add_servers()->add_optimizers()->set_applied(5);
  metrics.add_processes()->set_processor_seconds(1.5);
  auto& process = *record.add_processes();
  process.set_role("replay");
  process.set_endpoint("tcp://127.0.0.1:1");
  *record.add_processes() = process;
  record.mutable_processes(1)->set_role("environment");
  return {empty.SerializeAsString(), record.SerializeAsString()};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe::actors;
  try {
    static const RunConfig config;
    const auto record = parse_head_record(std::as_bytes(std::span(data, size)), config);
    MetricsSum sum(record.before());
    sum.restore(record.metrics());
    if (sum.progress(0.5, true).updates < record.before().updates())
      __builtin_trap();
    sum.record();
  } catch (const std::runtime_error&) {
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
