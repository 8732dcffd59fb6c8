#include "experiments/run_folder/log_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "env/legible.hpp"

namespace troupe::experiments {

LogFile::LogFile(const std::filesystem::path& path) : out_(path, std::ios::app) {
  if (!out_) {
    throw std::runtime_error(path.string() + ": cannot be written: " + std::strerror(errno));
  }
}

void LogFile::write(UtcTime now, const std::string& level, const std::string& text) {
  std::string line = log_time(now) + ' ' + level + ' ' + env::legible(text);
  std::replace(line.begin(), line.end(), '\n', ' '); // one event, one line
  const std::lock_guard lock(mutex_);
  out_ << line << '\n' << std::flush;
}

} // namespace troupe::experiments
