#include "experiments/commands/running/run_dashboard.hpp"

#include <chrono>
#include <cstdio>
#include <span>

#include "actors/run/control.hpp"
#include "experiments/commands/running/run_choice.hpp"
#include "experiments/report/picture.hpp"
#include "experiments/report/status_text.hpp"
#include "experiments/web/secrets.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr std::chrono::seconds kStatusDeadline{2};
constexpr std::chrono::seconds kActionDeadline{60};
constexpr std::chrono::seconds kPictureDeadline{10};
constexpr int kPictureQuality = 90;

/// Operates a run through its head.
class HeadOperator : public dashboard::RunOperator {
public:
  HeadOperator(LiveRun live, const RunChoice& choice)
      : live_(std::move(live)), control_(control_place(live_, choice)) {}

  std::vector<std::string> actions() const override { return actions_; }
  std::string status() override {
    const auto told = control_.status(kStatusDeadline);
    actions_ = {told.operations().begin(), told.operations().end()};
    return status_json(live_.head, told);
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
  std::string timeline(std::int64_t updates) override {
    return control_.timeline(updates, kActionDeadline);
  }
  std::string limit(double samples_per_insert, double error_buffer) override {
    return control_.limit(samples_per_insert, error_buffer, kActionDeadline);
  }
  Picture picture(int actor, int environment, bool observed) override {
    actors::wire::PictureOrder order;
    order.set_actor(actor);
    order.set_environment(environment);
    order.set_observed(observed);
    const auto made = control_.picture(order, kPictureDeadline);
    const std::span<const std::uint8_t> rgb(
        reinterpret_cast<const std::uint8_t*>(made.rgb().data()), made.rgb().size());
    return {.jpeg = encode_jpeg(made.width(), made.height(), rgb, kPictureQuality),
            .observed = made.observed(),
            .agent_steps = made.agent_steps(),
            .environments = made.environments()};
  }

private:
  LiveRun live_;
  std::vector<std::string> actions_; // the actions that the run offers
  actors::Control control_;
};

} // namespace

void add_dashboard_flags(CLI::App& command, DashboardChoice& choice) {
  command.add_flag("--dashboard", choice.wanted,
                   "serves a page with curves, data flow, logs and actions on 127.0.0.1 and prints "
                   "its address");
  command.add_option("--dashboard-port", choice.port, "port of the dashboard; default: a free one")
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
                                                    const std::filesystem::path& runs,
                                                    const std::filesystem::path& selected,
                                                    const std::string& keys) {
  if (!choice.wanted) {
    return nullptr;
  }
  auto made = std::make_unique<dashboard::Dashboard>(
      dashboard::DashboardOptions{.runs = runs,
                                  .http = {.port = choice.port},
                                  .token = web::new_token(),
                                  .connect = connect_to_heads(keys),
                                  .selected = selected});
  std::fprintf(stderr, "dashboard: %s\n", made->address().c_str());
  return made;
}

} // namespace troupe::experiments::commands
