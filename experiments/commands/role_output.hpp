#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "experiments/rotated_file.hpp"

namespace troupe::experiments::commands {

/// What the processes of a run's roles print: each one's into a file of its own, every line with
/// its time and `node`, bounded by rotation (experiments/rotated_file.hpp). Any thread.
class RoleOutput {
public:
  explicit RoleOutput(std::string node);
  ~RoleOutput(); // takes what was printed before
  RoleOutput(const RoleOutput&) = delete;
  RoleOutput& operator=(const RoleOutput&) = delete;

  /// An end to write to for a child's standard output and error, or -1 where the system has none to
  /// give. Whoever calls closes it after the fork.
  int attach(const std::filesystem::path& file);

private:
  struct Source {
    RotatedFile file;
    std::string rest; // of a line that is not whole yet
  };
  void work(const std::stop_token& ended);
  bool take(int handle, Source& source) const; // false: all who wrote are gone
  void write(Source& source, std::string_view line) const;

  std::string node_;
  int wake_ = -1; // written to when there is a new one, or at the end
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Source>> sources_; // by the end that is read
  std::jthread thread_;
};

} // namespace troupe::experiments::commands
