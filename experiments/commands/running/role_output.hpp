#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "experiments/run_folder/rotated_file.hpp"

namespace troupe::experiments::commands {

/// Writes the output of each process to a file of its own, and prefixes each line with the time and
/// `node`. Rotation bounds the size of the files (experiments/run_folder/rotated_file.hpp). May be
/// called from any thread.
class RoleOutput {
public:
  explicit RoleOutput(std::string node);
  ~RoleOutput(); // first reads what was printed before
  RoleOutput(const RoleOutput&) = delete;
  RoleOutput& operator=(const RoleOutput&) = delete;

  /// Returns a descriptor for the standard output and error of a child, or -1 if the system has
  /// none left. The caller closes it after the fork.
  int attach(const std::filesystem::path& file);

private:
  struct Source {
    RotatedFile file;
    std::string rest; // an incomplete last line
  };
  void work(const std::stop_token& ended);
  bool take(int handle, Source& source) const; // false: all writers have closed the pipe
  void write(Source& source, std::string_view line) const;

  std::string node_;
  int wake_ = -1; // written to for a new source, and at the end
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Source>> sources_; // by the read end of the pipe
  std::jthread thread_;
};

} // namespace troupe::experiments::commands
