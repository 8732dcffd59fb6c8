#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "experiments/run_folder/rotated_file.hpp"

namespace troupe::experiments::commands {

/// Writes the output of each process to its own file, each line with its time and `node`. Rotation
/// bounds the files (experiments/run_folder/rotated_file.hpp). Any thread.
class RoleOutput {
public:
  explicit RoleOutput(std::string node);
  ~RoleOutput(); // takes what was printed before
  RoleOutput(const RoleOutput&) = delete;
  RoleOutput& operator=(const RoleOutput&) = delete;

  /// Returns a descriptor for a child's standard output and error, or -1 if the system has none
  /// left. The caller closes it after the fork.
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
