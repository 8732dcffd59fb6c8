#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/run_folder/run_logs.hpp"

namespace troupe::experiments::dashboard {

/// Which lines to show.
struct LogFilter {
  std::string who;       // part of the source: "environment/3", "head"; "" for all
  std::string contains;  // part of the line, in any case; "" for all
  bool problems = false; // only warnings and errors
  std::size_t most = 500;
};

/// The newest lines of a run's logs, at most 20,000. One thread at a time.
class LogTail {
public:
  explicit LogTail(std::filesystem::path run);

  void read();

  /// The newest lines that fit, oldest first.
  std::vector<LogLine> lines(const LogFilter& filter) const;
  const LogLine& first_problem() const {
    return first_problem_;
  } // an error or warning; no text: none

private:
  RunLogs logs_;
  std::deque<LogLine> lines_;
  LogLine first_problem_;
};

/// "error" or "warning" of a line of log.txt; "" for any other.
std::string level_of(const LogLine& line);

} // namespace troupe::experiments::dashboard
