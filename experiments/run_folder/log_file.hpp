#pragma once

#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>

#include "experiments/run_folder/clock.hpp"

namespace troupe::experiments {

/// log.txt: one line per event, "2026-11-21T10:00:00Z warning text"; flushed at every line. Any
/// thread. Throws std::runtime_error if it cannot be opened; later, a line that cannot be written
/// is dropped (see ok()) and the run continues.
class LogFile {
public:
  explicit LogFile(const std::filesystem::path& path);
  void write(UtcTime now, const std::string& level, const std::string& text);
  bool ok() const { return out_.good(); }

private:
  std::mutex mutex_;
  std::ofstream out_;
};

} // namespace troupe::experiments
