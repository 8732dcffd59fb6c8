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

/// Everything that a run tells goes through here to metrics.csv, the event file, log.txt and the
/// screen. Called on one thread at a time. While the disk is full what a file should get waits in
/// memory, which is logged once, and once more when the file is written again.
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
    /// Gets the lines of the log, too; may be empty.
    std::function<void(const std::string& level, const std::string& text)> listener = {};
  };

  /// Throws std::runtime_error when a file cannot be opened.
  explicit Recorder(Options options);

  actors::RunCallbacks callbacks();
  void log(const std::string& level, const std::string& text); // file and screen
  void finish() { printer_.finish(); }

  /// Shows a file, PNG or GIF, in TensorBoard; of a run's pictures as many as 64 MiB hold. Width
  /// and height in pixels.
  void picture(const std::string& tag, std::int64_t step, const std::filesystem::path& file,
               int width, int height);
  void ended(bool success); // not of a run that was interrupted: it can be resumed

  /// What could not be written at the end; empty: nothing.
  std::string unwritten();

private:
  void progress(const actors::Progress& progress);
  void evaluated(const actors::Evaluated& evaluated);
  void measured(const actors::Evaluated& evaluated); // on data
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
  std::vector<double> returns_, lengths_; // of episodes since the last distributions, the newest
  std::size_t next_episode_ = 0;          // that is replaced where they are full
};

} // namespace troupe::experiments
