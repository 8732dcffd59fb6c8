#include "experiments/commands/running/run_dashboard.hpp"

#include <chrono>
#include <cstdio>

#include "actors/run/control.hpp"
#include "experiments/commands/running/run_choice.hpp"
#include "experiments/report/status_text.hpp"
#include "experiments/web/secrets.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr std::chrono::seconds kStatusDeadline{2};
constexpr std::chrono::seconds kActionDeadline{60};

/// Through the run's head.
class HeadOperator : public dashboard::RunOperator {
public:
  HeadOperator(LiveRun live, const RunChoice& choice)
      : live_(std::move(live)), control_(control_place(live_, choice)) {}

  std::vector<std::string> actions() const override {
    return {"stop", "scale", "restart", "checkpoint", "pause"};
  }
  std::string status() override {
    return status_json(live_.head, control_.status(kStatusDeadline));
  }
  std::string stop() override {
    control_.stop();
    return "the run stops after a checkpoint";
  }
  std::string scale(const std::string& role, int count) override {
    return control_.scale(role, count, kActionDeadline);
  }
  std::string restart(const std::string& role, const std::string& node) override {
    return control_.restart(role, node, kActionDeadline);
  }
  std::string checkpoint() override { return control_.checkpoint(kActionDeadline); }
  std::string pause(bool paused) override { return control_.pause(paused, kActionDeadline); }

private:
  LiveRun live_;
  actors::Control control_;
};

/// Of the run whose actors are threads of this process.
class ThreadsOperator : public dashboard::RunOperator {
public:
  explicit ThreadsOperator(std::atomic<bool>& stop) : stop_(stop) {}

  std::vector<std::string> actions() const override { return {"stop"}; }
  std::string status() override { return ""; }
  std::string stop() override {
    stop_ = true;
    return "the run stops after a checkpoint";
  }
  std::string scale(const std::string&, int) override { refuse("scaled"); }
  std::string restart(const std::string&, const std::string&) override { refuse("restarted"); }
  std::string checkpoint() override { refuse("told to write a checkpoint"); }
  std::string pause(bool) override { refuse("paused"); }

private:
  [[noreturn]] static void refuse(const char* what) {
    throw std::invalid_argument(
        std::string("the actors are threads of one process, which cannot be ") + what
        + "; train with --processes");
  }
  std::atomic<bool>& stop_;
};

} // namespace

void add_dashboard_flags(CLI::App& command, DashboardChoice& choice) {
  command.add_flag("--dashboard", choice.wanted,
                   "serves a page with curves, data flow, logs and actions on 127.0.0.1 and prints "
                   "its address");
  command.add_option("--dashboard-port", choice.port, "its port; default: a free one")
      ->check(CLI::Range(1, 65535))
      ->needs("--dashboard");
}

dashboard::Connect connect_to_heads(const std::string& keys) {
  return [keys](const std::filesystem::path& run) -> std::unique_ptr<dashboard::RunOperator> {
    RunChoice choice;
    choice.keys = keys;
    return std::make_unique<HeadOperator>(find_live_run(run, {}), choice);
  };
}

std::unique_ptr<dashboard::Dashboard> run_dashboard(const DashboardChoice& choice,
                                                    const std::filesystem::path& run, bool threads,
                                                    const std::string& keys,
                                                    std::atomic<bool>& stop) {
  if (!choice.wanted) {
    return nullptr;
  }
  const auto folder = std::filesystem::absolute(run).lexically_normal();
  const auto connect =
      [heads = connect_to_heads(keys), folder, threads,
       &stop](const std::filesystem::path& other) -> std::unique_ptr<dashboard::RunOperator> {
    std::error_code error;
    if (threads && std::filesystem::equivalent(other, folder, error)) {
      return std::make_unique<ThreadsOperator>(stop);
    }
    return heads(other);
  };
  auto made = std::make_unique<dashboard::Dashboard>(
      dashboard::DashboardOptions{.runs = folder.parent_path().parent_path(),
                                  .http = {.port = choice.port},
                                  .token = web::new_token(),
                                  .connect = connect,
                                  .selected = folder});
  std::fprintf(stderr, "dashboard: %s\n", made->address().c_str());
  return made;
}

} // namespace troupe::experiments::commands
