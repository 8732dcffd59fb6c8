#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace troupe::experiments {

/// The path of logs/<role>-<index>.log in a run's folder, which RoleOutput writes.
std::filesystem::path role_log(const std::filesystem::path& run, const std::string& role,
                               int index);

/// Selects lines of a run's logs.
struct LogChoice {
  std::string role; // "environment", "environment/3", "head"; "": all
  std::string node; // name of a node; "": all
};

/// A line and its source.
struct LogLine {
  std::string time; // as of log_time(); a line without a time gets that of the line before
  std::string who;  // "head", "node n-0", "environment/3 on n-0"
  std::string text;
};

/// Reads log.txt, nodes.log and logs/ of a run while they grow. Does not need the head.
class RunLogs {
public:
  /// Each read() reads only the newest `most_bytes`, which long files share. Throws
  /// std::invalid_argument for a role without logs.
  RunLogs(std::filesystem::path run, LogChoice choice,
          std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max());

  /// Returns the complete lines written since the last call, sorted by time. The first call returns
  /// the existing lines.
  std::vector<LogLine> read();

private:
  struct Source {
    std::string role; // "head", "node", or a role
    int index = 0;
    std::uint64_t at = 0;    // number of bytes read
    std::uint64_t inode = 0; // inode of the file that these bytes belong to
    std::string rest = {};   // an incomplete last line
    std::string time = {};   // time of its last line
    bool is_inside = false;  // whether `at` is within a line whose beginning was left out
  };
  void read_file(const std::filesystem::path& path, std::uint64_t most, Source& source,
                 std::vector<LogLine>& lines);
  void take(const Source& source, LogLine line, std::vector<LogLine>& lines) const;

  std::filesystem::path run_;
  LogChoice choice_;
  std::uint64_t most_bytes_;
  std::map<std::filesystem::path, Source> sources_;
};

} // namespace troupe::experiments
