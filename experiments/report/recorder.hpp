#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/run_config.hpp"
#include "experiments/report/progress_line.hpp"
#include "experiments/run_folder/clock.hpp"
#include "experiments/run_folder/event_file.hpp"
#include "experiments/run_folder/live_file.hpp"
#include "experiments/run_folder/log_file.hpp"
#include "experiments/run_folder/metrics_file.hpp"

namespace troupe::experiments {

/// Writes everything that a run reports to metrics.csv, metrics.jsonl, the event file, log.txt and
/// the screen. One thread at a time. While the disk is full, data for a file wait in memory; this
/// is logged once, and again when the file can be written.
class Recorder {
public:
  struct Options {
    std::filesystem::path folder;
    actors::RunConfig::Stop stop = {};
    std::vector<std::string> columns; // of metrics.csv
    Settings settings = {};           // of the experiment
    std::FILE* screen = nullptr;      // nullptr: silent
    bool terminal = false;
    std::function<UtcTime()> now;
    /// Also gets the lines of the log; may be empty.
    std::function<void(const std::string& level, const std::string& text)> listener = {};
  };

  /// Throws std::runtime_error when a file cannot be opened.
  explicit Recorder(Options options);

  actors::RunCallbacks callbacks();
  void log(const std::string& level, const std::string& text); // to the file and the screen
  void finish() { printer_.finish(); }

  /// Adds a PNG or GIF file to the event file, for TensorBoard; a run's pictures are limited to 64
  /// MiB in total. Width and height are in pixels.
  void picture(const std::string& tag, std::int64_t step, const std::filesystem::path& file,
               int width, int height);
  void ended(bool success); // not called for an interrupted run, which can be resumed

  /// Describes what could not be written by the end of the run; empty if nothing is missing.
  std::string unwritten();

private:
  void progress(const actors::Progress& progress);
  void evaluated(const actors::Evaluated& evaluated);
  void measured(const actors::Evaluated& evaluated); // for a run on data
  void episode(std::int64_t environment_steps, double episode_return, std::int64_t length);
  void distributions(const actors::Distributions& made);
  void pictures(const actors::Evaluated& evaluated);
  void tell_of_disk();

  Options options_;
  LogFile log_;
  MetricsFile metrics_;
  LiveFile live_;
  EventFile events_;
  ProgressPrinter printer_;
  std::uintmax_t picture_bytes_ = 0;
  std::optional<double> last_evaluation_;
  std::vector<double> returns_, lengths_; // of the newest episodes since the last distributions
  std::size_t next_episode_ = 0;          // once they are full: the entry replaced next
};

} // namespace troupe::experiments
