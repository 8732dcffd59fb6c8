// Serves the dashboard of a simulated run with --processes processes and prints its address as
// JSON, until standard input ends. dashboard_bench.py measures its requests.
// The run's folder is written as a run writes it: the reports of all actors are summed by a
// MetricsSum and written by a LiveFile twice a second, and a tenth of the processes add a line to
// their logs. The operator answers with the status of all processes; the message between it and a
// head is decoded, but not sent.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include <CLI/CLI.hpp>

#include "actors/run/metrics_actor.hpp"
#include "experiments/bench/bench_folder.hpp"
#include "experiments/config/config.hpp"
#include "experiments/dashboard/dashboard.hpp"
#include "experiments/report/status_text.hpp"
#include "experiments/run_folder/folder_lock.hpp"
#include "experiments/run_folder/live_file.hpp"
#include "experiments/run_folder/run_logs.hpp"
#include "experiments/web/secrets.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;
using namespace actors;

constexpr int kReportPeriod = 500; // milliseconds
constexpr int kLogLines = 20;      // of each process at the start
constexpr int kRows = 10'000;      // of metrics.csv

/// How many processes have each role; with one learner and one evaluator.
struct Roles {
  int environments = 0, shards = 0;
};

/// Calls `use` with the role and index of each process.
void for_each_process(const Roles& roles, const auto& use) {
  for (int i = 0; i < roles.environments; ++i)
    use("environment", i);
  for (int i = 0; i < roles.shards; ++i)
    use("replay", i);
  use("learner", 0);
  use("evaluator", 0);
}

wire::RunStatus status_of(const Roles& roles) {
  wire::RunStatus made;
  made.mutable_head()->set_phase("training");
  made.mutable_head()->set_environments(roles.environments);
  made.mutable_supervisor()->set_restarts_allowed(3);
  made.mutable_supervisor()->set_restart_minutes(10);
  for_each_process(roles, [&](const char* role, int index) {
    wire::SupervisorReport::Process& process = *made.mutable_supervisor()->add_processes();
    process.set_role(role);
    process.set_index(index);
    process.set_state("up");
    process.set_node("node-" + std::to_string(index % 100));
    process.set_process(10'000 + index);
    process.set_age(3600);
  });
  return made;
}

class SimulatedOperator : public dashboard::RunOperator {
public:
  explicit SimulatedOperator(std::string status) : status_(std::move(status)) {}
  std::vector<std::string> actions() const override { return {}; }
  std::string status() override {
    wire::RunStatus told;
    told.ParseFromString(status_);
    return status_json({}, told);
  }
  std::string stop() override { return refused(); }
  std::string scale(const std::string&, int) override { return refused(); }
  std::string restart(const std::string&, const std::string&) override { return refused(); }
  std::string checkpoint() override { return refused(); }
  std::string pause(bool) override { return refused(); }
  std::string timeline(std::int64_t) override { return refused(); }
  std::string limit(double, double) override { return refused(); }
  Picture picture(int, int, bool) override {
    refused();
    return {};
  }

private:
  static std::string refused() { throw std::invalid_argument("the run is simulated"); }
  std::string status_; // an encoded RunStatus
};

/// The reports of all actors of a run after `seconds`.
void add_reports(const Roles& roles, int seconds, MetricsSum& sum) {
  const std::string step = "environment.step", wait = "environment.wait",
                    insert = "environment.insert", inference = "environment.inference",
                    update = "learner.update";
  for (int i = 0; i < roles.environments; ++i) {
    wire::EnvironmentReport report;
    report.set_actor(i);
    report.set_agent_steps(100 * seconds);
    report.set_environment_steps(100 * seconds);
    report.set_insertions(i % 3);
    report.set_waiting(i % 10 == 0 ? "waiting until replay 0 takes 2 insertions" : "");
    for (const std::string& stage : {step, wait, insert, inference})
      (*report.mutable_seconds())[stage] = 0.25 * seconds;
    sum.add(report);
  }
  for (int i = 0; i < roles.shards; ++i) {
    wire::ShardReport report;
    report.set_shard(i);
    report.set_waiting_insertions(2);
    report.set_waiting("2 insertions wait until samples are taken");
    report.mutable_stats()->set_items(10'000);
    report.mutable_stats()->set_inserted(1000 * seconds);
    report.mutable_stats()->set_sampled(32'000 * seconds);
    sum.add(report);
  }
  wire::LearnerReport learner;
  learner.set_updates(50 * seconds);
  learner.set_batches(2);
  (*learner.mutable_seconds())[update] = seconds;
  sum.add(learner);
}

void add_log_line(const fs::path& run, const char* role, int index) {
  std::ofstream(role_log(run, role, index), std::ios::app)
      << log_time(std::chrono::system_clock::now()) << " node-" << index % 100
      << ": the process reports that it works\n";
}

void write_files(const fs::path& run, const Roles& roles) {
  fs::create_directories(run / "logs");
  const Experiment experiment =
      parse_experiment("environment { task: \"cartpole_balance\" }", "balance.textproto",
                       {"actors.environment=" + std::to_string(roles.environments),
                        "replay.shards=" + std::to_string(roles.shards)});
  std::ofstream(run / "config.textproto") << resolved_text(experiment);
  std::ofstream metrics(run / "metrics.csv", std::ios::binary);
  metrics << "kind,environment_steps,updates,training_seconds,environment_steps_per_second,"
             "updates_per_second,episode_return,evaluation_return\r\n";
  for (int i = 1; i <= kRows; ++i)
    metrics << "progress," << 50'000 * i << "," << 25 * i << "," << 0.5 * i << ",100000,50,"
            << i % 7 << ",\r\n";
  std::ofstream(run / "log.txt") << log_time(std::chrono::system_clock::now())
                                 << " info training\n";
  for_each_process(roles, [&](const char* role, int index) {
    for (int line = 0; line < kLogLines; ++line)
      add_log_line(run, role, index);
  });
}

void serve(int processes) {
  const Roles roles{.environments = processes - processes / 16 - 2, .shards = processes / 16};
  const BenchFolder folder;
  const fs::path run = folder.path / "balance" / "2026-11-25T10-00-00";
  write_files(run, roles);
  const FolderLock lock(run, "this run");
  LiveFile live(run);
  MetricsSum sum({});
  const std::string status = status_of(roles).SerializeAsString();
  const dashboard::Dashboard served(
      {.runs = folder.path, .token = web::new_token(), .connect = [&](const fs::path&) {
         return std::make_unique<SimulatedOperator>(status);
       }});
  for (int round = 1;; ++round) {
    add_reports(roles, round, sum);
    if (!live.write(sum.progress(0.001 * kReportPeriod, true), std::chrono::system_clock::now()))
      throw std::runtime_error("cannot write live.json in " + run.string());
    for_each_process(roles, [&](const char* role, int index) {
      if (index % 10 == round % 10)
        add_log_line(run, role, index);
    });
    if (round == 1) {
      std::printf("{\"address\": \"%s\", \"processes\": %d}\n", served.address().c_str(),
                  processes);
      std::fflush(stdout);
    }
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    char ignored[64];
    if (::poll(&input, 1, kReportPeriod) > 0 && ::read(STDIN_FILENO, ignored, sizeof ignored) <= 0)
      return;
  }
}

} // namespace
} // namespace troupe::experiments

int main(int count, char** words) {
  CLI::App app("Serves the dashboard of a simulated run; dashboard_bench.py measures it");
  app.footer("Example: dashboard_cluster --processes 1000");
  int processes = 1000;
  app.add_option("--processes", processes, "of the run")
      ->check(CLI::Range(18, 20'000))
      ->capture_default_str();
  CLI11_PARSE(app, count, words);
  try {
    troupe::experiments::serve(processes);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dashboard_cluster: %s\n", error.what());
    return 1;
  }
  return 0;
}
