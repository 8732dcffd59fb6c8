#include "experiments/run_folder/log_file.hpp"

#include <algorithm>

#include "env/legible.hpp"

namespace troupe::experiments {

LogFile::LogFile(const std::filesystem::path& path) : file_(path) {}

void LogFile::write(UtcTime now, const std::string& level, const std::string& text) {
  std::string line = log_time(now) + ' ' + level + ' ' + env::legible(text);
  std::replace(line.begin(), line.end(), '\n', ' '); // keeps each event on one line
  const std::lock_guard lock(mutex_);
  file_.append(line + '\n');
}

std::optional<std::string> LogFile::news() {
  const std::lock_guard lock(mutex_);
  return file_.news();
}

} // namespace troupe::experiments
