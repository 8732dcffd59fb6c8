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
constexpr std::size_t kBlock = 1 << 20; // bytes searched at a time
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

/// The rows that begin in the last `most` bytes before `end`. Rows also begin at `least`, before
/// which nothing is read.
struct RowsPart {
  RowsPart(const fs::path& file, std::uint64_t least, std::uint64_t end, std::size_t most)
      : begin(end - std::min<std::uint64_t>(most, end - std::min(least, end))) {
    text = read_part(file, begin, end - begin);
    if (begin > least) { // perhaps within a row
      const std::size_t row = text.find('\n') + 1;
      text.erase(0, row < text.size() ? row : text.size());
      begin += text.empty() ? 0 : row;
    }
  }
  std::uint64_t begin;
  std::string text;
};

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
    : id_(std::move(id)),
      folder_(std::move(folder)),
      sweep_(sweep_of(id_)),
      first_problem_(folder_) {}

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

/// Reads the run's progress from the end of metrics.csv, and its result from the last row that has
/// one, which may be far before the end. That search continues with the next call if `deadline`
/// ends it, and covers every row once.
void WatchedRun::read_tail(RunMetrics::Deadline deadline) {
  const fs::path file = folder_ / "metrics.csv";
  const std::string& wanted = summary_.headline;
  std::error_code error;
  const auto size = fs::file_size(file, error);
  const bool searches = !wanted.empty() && search_.end > search_.begin;
  if (error || (size == tail_size_ && !searches)) {
    return;
  }
  const std::string text = read_part(file, 0, kMostHeader);
  const std::uint64_t first = text.find('\n') + 1; // of the rows; 0 while the header is incomplete
  std::vector<std::string> names;
  scan_csv(text.substr(0, first), [&](const std::vector<std::string_view>& fields) {
    names.assign(fields.begin(), fields.end());
  });
  bool found = false;
  const auto take = [&](const std::string& name, const std::string_view& field) {
    double value = 0;
    if (field.empty()
        || std::from_chars(field.data(), field.data() + field.size(), value).ec != std::errc()) {
      return;
    }
    if (name == "environment_steps") {
      summary_.environment_steps = value;
    } else if (name == "updates") {
      summary_.updates = value;
    } else if (name == "training_seconds") {
      summary_.training_seconds = value;
    } else if (name == wanted) {
      summary_.result = value;
      found = true;
    }
  };
  if (size != tail_size_) {
    search_ = size < tail_size_ ? Search() : search_; // another file
    tail_size_ = size;
    const RowsPart rows(file, first, size, kTail);
    const std::uint64_t begin = rows.begin;
    const std::uint64_t end =
        begin + scan_csv(rows.text, [&](const std::vector<std::string_view>& fields) {
          for (std::size_t i = 0; i < std::min(names.size(), fields.size()); ++i) {
            take(names[i], fields[i]);
          }
          final_ = !fields.empty() && fields[0] == "final";
        });
    if (found) {
      search_ = {.begin = end, .end = end, .read = end};
    } else if (begin > search_.read) { // rows between the last tail and this one
      search_.begin = searches ? search_.begin : search_.read;
      search_.end = begin;
    }
    search_.read = end;
  }
  const auto column =
      static_cast<std::size_t>(std::find(names.begin(), names.end(), wanted) - names.begin());
  const std::uint64_t least = std::max(search_.begin, first);
  while (!found && !wanted.empty() && search_.end > least
         && std::chrono::steady_clock::now() < deadline) {
    const RowsPart rows(file, least, search_.end, kBlock);
    scan_csv(rows.text, [&](const std::vector<std::string_view>& fields) {
      if (column < fields.size()) {
        take(wanted, fields[column]);
      }
    });
    search_.end = found ? search_.begin : rows.begin;
  }
  if (search_.end <= least) {
    search_.end = search_.begin;
  }
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
    const std::string before = summary_.headline;
    read_experiment();
    if (summary_.headline != before) { // only now is the column of its result known
      tail_size_ = 0;
      search_ = {};
    }
  }
  read_tail(deadline);
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

std::vector<LogLine> WatchedRun::log(const LogFilter& filter) {
  const std::lock_guard lock(mutex_);
  if (!log_) {
    log_.emplace(folder_);
  }
  log_->read();
  return log_->lines(filter);
}

void WatchedRun::forget_log() {
  const std::lock_guard lock(mutex_);
  log_.reset();
}

LogLine WatchedRun::first_problem() {
  const std::lock_guard lock(mutex_);
  return first_problem_.read();
}

} // namespace troupe::experiments::dashboard
