#include "experiments/dashboard/watched_run.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "experiments/config/agent_choice.hpp"
#include "experiments/config/config.hpp"
#include "experiments/config/on_data.hpp"
#include "experiments/run_folder/head_file.hpp"
#include "experiments/run_folder/metrics_file.hpp"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments::dashboard {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kTail = 32 << 10; // bytes
constexpr std::uintmax_t kMostHeader = 64 << 10;

fs::file_time_type time_of(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  return error ? fs::file_time_type() : time;
}

/// Reads at most `most` bytes of a file from `begin`.
std::string read_part(const fs::path& path, std::uint64_t begin, std::size_t most) {
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(begin));
  std::string text(most, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

std::string agent_name(const Experiment& experiment) {
  if (is_on_data(experiment)) {
    return experiment.has_classifier() ? experiment.classifier().model() : "sngan";
  }
  const auto agents = agent_blocks(experiment);
  return agents.empty() ? "" : agents.front();
}

std::string group_of(Experiment experiment) {
  experiment.clear_seed();
  experiment.clear_name();
  char text[24];
  std::snprintf(text, sizeof text, "%016zx",
                std::hash<std::string>()(experiment.SerializeAsString()));
  return text;
}

/// Returns "speeds" for "speeds/walker_seed=1/walker/2026-…".
std::string sweep_of(const std::string& id) {
  return std::count(id.begin(), id.end(), '/') >= 3 ? id.substr(0, id.find('/')) : "";
}

} // namespace

WatchedRun::WatchedRun(std::string id, fs::path folder)
    : id_(std::move(id)), folder_(std::move(folder)), sweep_(sweep_of(id_)) {}

std::string WatchedRun::config_text() const {
  return read_part(folder_ / "config.textproto", 0, 1 << 20);
}

void WatchedRun::read_experiment() {
  const auto time = time_of(folder_ / "config.textproto");
  if (config_read_ && time == config_time_) {
    return;
  }
  config_read_ = true;
  config_time_ = time;
  experiment_.reset();
  summary_.problem.clear();
  try {
    experiment_ = load_experiment(folder_ / "config.textproto");
  } catch (const std::exception& error) { // written by another version
    summary_.problem = error.what();
    summary_.group = "none " + id_;
    return;
  }
  summary_.experiment = experiment_->name();
  summary_.task =
      is_on_data(*experiment_) ? experiment_->data().path() : experiment_->environment().task();
  summary_.agent = agent_name(*experiment_);
  summary_.group = group_of(*experiment_);
  summary_.headline = headline(*experiment_);
  summary_.seed = std::to_string(experiment_->seed());
  const bool recorded = experiment_->has_recording(); // for a run on data, the rows decide
  summary_.target = plays(*experiment_)
                        ? static_cast<double>(experiment_->stop().environment_steps())
                    : recorded ? static_cast<double>(experiment_->recording().updates())
                               : 0;
}

/// Reads the run's progress from the end of metrics.csv.
void WatchedRun::read_tail() {
  const fs::path file = folder_ / "metrics.csv";
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error || size == tail_size_) {
    return;
  }
  tail_size_ = size;
  const std::string text = read_part(file, 0, kMostHeader);
  std::string part = text.substr(0, text.find('\n') + 1);
  const std::size_t begin = size > kTail ? size - kTail : part.size();
  const std::string end = read_part(file, begin, kTail);
  part += size > kTail ? end.substr(std::min(end.size(), end.find('\n') + 1)) : end;
  std::vector<std::string> names;
  scan_csv(part, [&](const std::vector<std::string_view>& fields) {
    if (names.empty()) {
      names.assign(fields.begin(), fields.end());
      return;
    }
    for (std::size_t i = 0; i < std::min(names.size(), fields.size()); ++i) {
      double value = 0;
      const auto& field = fields[i];
      if (field.empty()
          || std::from_chars(field.data(), field.data() + field.size(), value).ec != std::errc()) {
        continue;
      }
      if (names[i] == "environment_steps") {
        summary_.environment_steps = value;
      } else if (names[i] == "updates") {
        summary_.updates = value;
      } else if (names[i] == "training_seconds") {
        summary_.training_seconds = value;
      } else if (names[i] == summary_.headline) {
        summary_.result = value;
      }
    }
    final_ = !fields.empty() && fields[0] == "final";
  });
}

void WatchedRun::read_state() {
  // Testing the lock takes it for a moment, so test it only if the run was alive or the lock was
  // taken.
  const auto time = time_of(folder_ / "lock");
  if (held_ || time != lock_time_) {
    lock_time_ = time;
    held_ = is_run_held(folder_).value_or(fs::exists(folder_ / "head.json"));
  }
  std::error_code error;
  if (held_) {
    summary_.state = "running";
  } else if (final_) {
    summary_.state = "finished";
  } else if (fs::exists(folder_ / "head.json", error)) {
    summary_.state = "killed";
  } else {
    std::string end = read_part(
        folder_ / "log.txt",
        std::max<std::uintmax_t>(4096, fs::file_size(folder_ / "log.txt", error)) - 4096, 4096);
    end.erase(end.find_last_not_of('\n') + 1);
    const std::string last = end.substr(end.rfind('\n') + 1);
    summary_.state = last.find("Z error ") != std::string::npos ? "failed" : "stopped";
  }
}

RunSummary WatchedRun::summary(RunMetrics::Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (std::chrono::steady_clock::now() < deadline) {
    const bool first = !config_read_;
    read_experiment();
    tail_size_ = first ? 0 : tail_size_; // only now is the column of its result known
  }
  read_tail();
  read_state();
  if (metrics_ && metrics_->complete()) {
    if (const auto value = metrics_->last(summary_.headline)) {
      summary_.result = value;
    }
  }
  return summary_;
}

Experiment WatchedRun::experiment() {
  const std::lock_guard lock(mutex_);
  read_experiment();
  if (!experiment_) {
    throw std::invalid_argument(summary_.problem);
  }
  return *experiment_;
}

void WatchedRun::forget_metrics() {
  const std::lock_guard lock(mutex_);
  forgotten_version_ = metrics_ ? metrics_->version() : forgotten_version_;
  metrics_.reset();
}

LogTail& WatchedRun::read_log() {
  if (!log_) {
    log_.emplace(folder_);
  }
  log_->read();
  return *log_;
}

std::vector<LogLine> WatchedRun::log(const LogFilter& filter) {
  const std::lock_guard lock(mutex_);
  return read_log().lines(filter);
}

LogLine WatchedRun::first_problem() {
  const std::lock_guard lock(mutex_);
  return read_log().first_problem();
}

} // namespace troupe::experiments::dashboard
