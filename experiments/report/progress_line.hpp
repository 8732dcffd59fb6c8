#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>

#include "actors/protocol/run_config.hpp"

namespace troupe::experiments {

/// A run's progress in one line: steps, frames/s, updates/s, episode return, time left. The least
/// important parts are dropped until it has at most `width` columns.
std::string progress_text(const actors::Progress& progress, const actors::RunConfig::Stop& stop,
                          std::optional<double> evaluation_return, std::size_t width);

/// Seconds until the first limit of `stop` is reached at the present rate; NaN if unknown.
double seconds_left(const actors::Progress& progress, const actors::RunConfig::Stop& stop);

/// Prints progress: on a terminal one line that is redrawn in place, otherwise a plain line for
/// every ten seconds of training. One thread at a time.
class ProgressPrinter {
public:
  /// `out` belongs to the caller. If `columns` is 0, the terminal's width is queried for every
  /// line.
  ProgressPrinter(std::FILE* out, bool terminal, std::size_t columns = 0);
  ~ProgressPrinter();

  void show(const actors::Progress& progress, const actors::RunConfig::Stop& stop,
            std::optional<double> evaluation_return);
  /// Prints a permanent line above the progress line.
  void line(const std::string& text);
  void finish(); // keeps the last progress line on the screen

private:
  std::size_t width() const;
  std::FILE* out_;
  bool terminal_;
  std::size_t columns_;
  bool drawn_ = false;
  double next_plain_seconds_ = 0;
};

} // namespace troupe::experiments
