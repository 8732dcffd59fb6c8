#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/run_folder/run_logs.hpp"

namespace troupe::experiments::dashboard {

/// Selects the lines to show.
struct LogFilter {
  std::string who;       // text that the source contains: "environment/3", "head"; "": all
  std::string contains;  // text that the line contains, ignoring case; "": all
  bool problems = false; // only warnings and errors
  std::size_t most = 500;
};

/// The newest lines of a run's logs, at most 20,000. Use from one thread at a time.
class LogTail {
public:
  explicit LogTail(std::filesystem::path run);

  void read();

  /// The newest lines that pass the filter, oldest first.
  std::vector<LogLine> lines(const LogFilter& filter) const;
  /// The first error or warning; its text is empty if there is none.
  const LogLine& first_problem() const { return first_problem_; }

private:
  RunLogs logs_;
  std::deque<LogLine> lines_;
  LogLine first_problem_;
};

/// The level "error" or "warning" of a line of log.txt; "" for any other line.
std::string level_of(const LogLine& line);

} // namespace troupe::experiments::dashboard
