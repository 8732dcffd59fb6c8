#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>

#include "actors/protocol/run_config.hpp"

namespace troupe::experiments {

/// What a run's progress says in one line: steps, frames/s, updates/s, episode return, time left.
/// Parts are dropped from the least important until it has at most `width` columns.
std::string progress_text(const actors::Progress& progress, const actors::RunConfig::Stop& stop,
                          std::optional<double> evaluation_return, std::size_t width);

/// Seconds until the first limit of `stop` is met at the present rate; NaN when unknown.
double seconds_left(const actors::Progress& progress, const actors::RunConfig::Stop& stop);

/// Shows it: on a terminal one line that is redrawn in place, else a plain line every ten seconds
/// of training. One thread.
class ProgressPrinter {
public:
  /// `out` belongs to the caller; `columns` 0: asks the terminal at every line.
  ProgressPrinter(std::FILE* out, bool terminal, std::size_t columns = 0);
  ~ProgressPrinter();

  void show(const actors::Progress& progress, const actors::RunConfig::Stop& stop,
            std::optional<double> evaluation_return);
  /// Prints a permanent line above the progress line.
  void line(const std::string& text);
  void finish(); // leaves the last progress line where it is

private:
  std::size_t width() const;
  std::FILE* out_;
  bool terminal_;
  std::size_t columns_;
  bool drawn_ = false;
  double next_plain_seconds_ = 0;
};

} // namespace troupe::experiments
