#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
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

/// The newest lines of a run's logs, at most 20,000; lines far before the end of a long file are
/// not read. Use from one thread at a time.
class LogTail {
public:
  explicit LogTail(std::filesystem::path run);

  void read();

  /// The newest lines that pass the filter, oldest first.
  std::vector<LogLine> lines(const LogFilter& filter) const;

private:
  RunLogs logs_;
  std::deque<LogLine> lines_;
};

/// The first error or warning in log.txt of a run, which is read as it grows until there is one.
/// Use from one thread at a time.
class FirstProblem {
public:
  explicit FirstProblem(const std::filesystem::path& run);

  /// Its text is empty if there is none.
  const LogLine& read();

private:
  void take(std::string_view line);

  std::filesystem::path file_;
  std::uint64_t at_ = 0; // end of the lines that were read
  LogLine problem_;
};

/// The level "error" or "warning" of a line of log.txt; "" for any other line.
std::string level_of(const LogLine& line);

} // namespace troupe::experiments::dashboard
