#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe::experiments {

/// logs/<role>-<index>.log of a run's folder, as RoleOutput writes it.
std::filesystem::path role_log(const std::filesystem::path& run, const std::string& role,
                               int index);

/// Selects lines of a run's logs.
struct LogChoice {
  std::string role; // "environment", "environment/3", "head"; "" for all
  std::string node; // "" for all
};

/// One line and its source.
struct LogLine {
  std::string time; // as log_time(); of lines without one that of the line before
  std::string who;  // "head", "node n-0", "environment/3 on n-0"
  std::string text;
};

/// Reads log.txt, nodes.log and logs/ of a run as they grow. Needs no head.
class RunLogs {
public:
  /// Throws std::invalid_argument for a role without logs.
  RunLogs(std::filesystem::path run, LogChoice choice);

  /// What was written since the last call (at first: all that is kept), by time. Whole lines only.
  std::vector<LogLine> read();

private:
  struct Source {
    std::string role; // "head", "node", or a role
    int index = 0;
    std::uint64_t at = 0;    // bytes read
    std::uint64_t inode = 0; // of the file that they are of
    std::string rest = {};   // of a line that is not whole yet
    std::string time = {};   // of its last line
  };
  void read_file(const std::filesystem::path& path, Source& source, std::vector<LogLine>& lines);
  void take(const Source& source, LogLine line, std::vector<LogLine>& lines) const;

  std::filesystem::path run_;
  LogChoice choice_;
  std::map<std::filesystem::path, Source> sources_;
};

} // namespace troupe::experiments
