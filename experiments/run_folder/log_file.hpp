#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "env/appended_file.hpp"
#include "experiments/run_folder/clock.hpp"

namespace troupe::experiments {

/// log.txt: one line per event, "2026-11-21T10:00:00Z warning text". While the disk is full, lines
/// wait in memory. May be used from any thread. Throws std::runtime_error if the file cannot be
/// opened.
class LogFile {
public:
  explicit LogFile(const std::filesystem::path& path);
  void write(UtcTime now, const std::string& level, const std::string& text);
  std::optional<std::string> news(); // see AppendedFile::news()

private:
  std::mutex mutex_;
  env::AppendedFile file_;
};

} // namespace troupe::experiments
