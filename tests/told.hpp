#pragma once

#include <mutex>
#include <string>
#include <vector>

namespace troupe {

/// The lines that a listener has received, on any thread.
class Told {
public:
  auto listener() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

} // namespace troupe
