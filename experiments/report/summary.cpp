#include "experiments/report/summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "experiments/config/on_data.hpp"
#include "experiments/run_folder/clock.hpp"

namespace troupe::experiments {
namespace {

std::string count_text(std::int64_t value) {
  const std::string digits = std::to_string(value);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) {
      out += ',';
    }
    out += digits[i];
  }
  return out;
}

std::string rate_text(std::int64_t count, double seconds) {
  if (!(seconds > 0)) {
    return "-";
  }
  char text[48];
  const double rate = static_cast<double>(count) / seconds;
  std::snprintf(text, sizeof text, rate < 100 ? "%.1f" : "%.0f", rate);
  return text;
}

std::string return_text(const std::vector<double>& returns) {
  if (returns.empty()) {
    return "not measured";
  }
  const double mean =
      std::accumulate(returns.begin(), returns.end(), 0.0) / static_cast<double>(returns.size());
  char text[128];
  if (returns.size() == 1) {
    std::snprintf(text, sizeof text, "%.1f (one episode)", mean);
    return text;
  }
  const auto [least, most] = std::minmax_element(returns.begin(), returns.end());
  std::snprintf(text, sizeof text, "%.1f (mean of %zu episodes, %.1f to %.1f)", mean,
                returns.size(), *least, *most);
  return text;
}

/// The time that one kind of actor spent per stage, longest first: seconds over all its actors
/// since the start or the resumption, and the share of each stage.
std::string time_text(const actors::Progress& progress, const std::string& kind) {
  std::vector<std::pair<std::string, double>> stages;
  for (const auto& [name, seconds] : progress.seconds) {
    if (name.starts_with(kind + ".") && std::isfinite(seconds) && seconds > 0) {
      stages.emplace_back(name.substr(kind.size() + 1), seconds);
    }
  }
  std::sort(stages.begin(), stages.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  const double whole =
      std::accumulate(stages.begin(), stages.end(), 0.0,
                      [](double sum, const auto& stage) { return sum + stage.second; });
  std::string out;
  for (const auto& [name, seconds] : stages) {
    char text[128];
    std::snprintf(text, sizeof text, "%s%s %.1f s (%.0f %%)", out.empty() ? "" : ", ", name.c_str(),
                  seconds, 100 * seconds / whole);
    out += text;
  }
  return out;
}

} // namespace

namespace {

std::string times_text(const Finished& finished) {
  const actors::Progress& p = finished.result.progress;
  return duration_text(p.training_seconds) + " of training, " + duration_text(finished.wall_seconds)
         + " in all, " + duration_text(p.processor_seconds) + " of processors";
}

void add_times(Summary& out, const actors::Progress& progress) {
  for (const char* kind : {"learner", "environment"}) {
    if (const std::string text = time_text(progress, kind); !text.empty()) {
      out.emplace_back("time of " + std::string(kind) + " actors", text);
    }
  }
}

/// Adds the output files of the run.
void add_end(Summary& out, const Finished& finished) {
  if (!finished.result.checkpoint.empty()) {
    out.emplace_back("checkpoint", finished.result.checkpoint.string());
  }
  out.emplace_back("run", finished.folder.string());
  if (!finished.video.empty()) {
    out.emplace_back("video", finished.video.string());
  }
}

void add_interruption(Summary& out, const Finished& finished) {
  if (finished.result.interrupted) {
    out.emplace_back("interrupted",
                     "by a signal; `troupe resume " + finished.folder.string() + "` continues it");
  }
}

Summary summarise_on_data(const Experiment& experiment, const Finished& finished) {
  const actors::Progress& p = finished.result.progress;
  Summary out;
  out.emplace_back("workload",
                   (experiment.has_classifier() ? "classifier " + experiment.classifier().model()
                                                : std::string("sngan"))
                       + " on " + experiment.data().path());
  add_interruption(out, finished);
  for (const auto& [name, value] : finished.result.evaluation.metrics) {
    char text[48];
    std::snprintf(text, sizeof text, "%.6g", value);
    out.emplace_back(name, text);
  }
  out.emplace_back("updates", count_text(p.updates) + ", on " + count_text(p.samples) + " rows");
  out.emplace_back("time", times_text(finished));
  out.emplace_back("rates", rate_text(p.samples, p.training_seconds) + " rows/s, "
                                + rate_text(p.updates, p.training_seconds) + " updates/s");
  add_times(out, p);
  add_end(out, finished);
  return out;
}

} // namespace

Summary summarise(const Experiment& experiment, const Finished& finished) {
  if (is_on_data(experiment)) {
    return summarise_on_data(experiment, finished);
  }
  const actors::Progress& p = finished.result.progress;
  const double seconds = p.training_seconds;
  Summary out;
  out.emplace_back("task",
                   experiment.environment().task()
                       + (experiment.environment().has_pixels() ? " from pixels" : " from states"));
  add_interruption(out, finished);
  out.emplace_back("return", return_text(finished.result.evaluation.returns));
  const bool played = plays(experiment);
  if (played) {
    out.emplace_back("steps", count_text(p.environment_steps) + " environment steps, "
                                  + count_text(p.agent_steps) + " agent steps, "
                                  + count_text(p.episodes) + " episodes");
  } else {
    out.emplace_back("recording",
                     experiment.recording().path() + ", " + count_text(p.inserts) + " items");
  }
  out.emplace_back("updates", count_text(p.updates));
  out.emplace_back("time", times_text(finished));
  out.emplace_back(
      "rates", (played ? rate_text(p.environment_steps, seconds) + " environment steps/s, " : "")
                   + (p.frames > 0 ? rate_text(p.frames, seconds) + " frames/s, " : "")
                   + (played ? rate_text(p.inserts, seconds) + " inserts/s, " : "")
                   + rate_text(p.samples, seconds) + " samples/s, " + rate_text(p.updates, seconds)
                   + " updates/s");
  add_times(out, p);
  add_end(out, finished);
  return out;
}

std::string summary_text(const Summary& summary) {
  std::size_t width = 0;
  for (const auto& [name, value] : summary) {
    width = std::max(width, name.size());
  }
  std::string out;
  for (const auto& [name, value] : summary) {
    out += name + std::string(width - name.size() + 2, ' ') + value + '\n';
  }
  return out;
}

} // namespace troupe::experiments
