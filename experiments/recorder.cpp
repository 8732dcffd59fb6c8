#include "experiments/recorder.hpp"

#include <numeric>

namespace troupe::experiments {

Recorder::Recorder(Options options, std::atomic<bool>& stop)
    : options_(std::move(options)),
      stop_(stop),
      log_(options_.folder / "log.txt"),
      metrics_(options_.folder / "metrics.csv"),
      events_(options_.folder, options_.now()),
      printer_(options_.screen == nullptr ? stderr : options_.screen, options_.terminal) {}

actors::RunCallbacks Recorder::callbacks() {
  return {.progress = [this](const actors::Progress& p) { progress(p); },
          .evaluated = [this](const actors::Evaluated& e) { evaluated(e); },
          .log = [this](const std::string& level, const std::string& text) { log(level, text); },
          .episode = [this](std::int64_t steps, double episode_return,
                            std::int64_t length) { episode(steps, episode_return, length); }};
}

void Recorder::guarded(const std::function<void()>& action) {
  if (!error_.empty()) {
    return;
  }
  try {
    action();
  } catch (const std::exception& failure) {
    error_ = failure.what();
    stop_ = true;
    log("error", error_);
  }
}

void Recorder::log(const std::string& level, const std::string& text) {
  log_.write(options_.now(), level, text);
  if (options_.screen != nullptr) {
    printer_.line(level == "info" ? text : level + ": " + text);
  }
}

void Recorder::progress(const actors::Progress& p) {
  guarded([&] {
    metrics_.progress(p);
    std::map<std::string, double> values = {
        {"rate/environment_steps_per_second", p.environment_steps_per_second},
        {"rate/updates_per_second", p.updates_per_second},
        {"rate/frames_per_second", p.frames_per_second},
        {"replay/items", static_cast<double>(p.replay_items)},
        {"replay/bytes", static_cast<double>(p.replay_bytes)},
        {"replay/disk_bytes", static_cast<double>(p.replay_disk_bytes)},
        {"actors/parameter_lag", p.parameter_lag},
        {"learner/updates", static_cast<double>(p.updates)}};
    for (const auto& [name, value] : p.learner) {
      values.emplace("learner/" + name, value);
    }
    events_.scalars(options_.now(), p.environment_steps, values);
  });
  if (options_.screen != nullptr) {
    printer_.show(p, options_.stop, last_evaluation_);
  }
}

void Recorder::evaluated(const actors::Evaluated& e) {
  if (e.returns.empty()) {
    return;
  }
  const double mean = std::accumulate(e.returns.begin(), e.returns.end(), 0.0)
                      / static_cast<double>(e.returns.size());
  last_evaluation_ = mean;
  guarded([&] {
    metrics_.evaluation(e);
    events_.scalars(options_.now(), e.environment_steps,
                    {{e.final ? "evaluation/final_return" : "evaluation/return", mean}});
  });
  char text[160];
  std::snprintf(text, sizeof text,
                "%s: mean return %.1f over %zu episodes after %lld environment steps, %lld updates",
                e.final ? "final evaluation" : "evaluation", mean, e.returns.size(),
                static_cast<long long>(e.environment_steps), static_cast<long long>(e.updates));
  log("info", text);
}

void Recorder::episode(std::int64_t environment_steps, double episode_return, std::int64_t length) {
  guarded([&] {
    events_.scalars(
        options_.now(), environment_steps,
        {{"episode/return", episode_return}, {"episode/length", static_cast<double>(length)}});
  });
}

} // namespace troupe::experiments
