#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace troupe::actors {

/// Counts refused connections and reports the 1st, 10th, 100th …, so that an attack fills no log
/// and a later one still leaves a trace. Any thread.
class Refusals {
public:
  explicit Refusals(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}

  void add(const std::string& why) {
    std::int64_t count = 0;
    {
      const std::lock_guard lock(mutex_);
      count = ++count_;
      if (count != next_)
        return;
      next_ *= 10;
    }
    if (tell_)
      tell_(count == 1 ? why : why + " (" + std::to_string(count) + " refused so far)");
  }
  std::int64_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }

private:
  const std::function<void(const std::string&)> tell_;
  mutable std::mutex mutex_; // guards the members below
  std::int64_t count_ = 0;
  std::int64_t next_ = 1; // the next count to report
};

} // namespace troupe::actors
