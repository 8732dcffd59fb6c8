#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::env::caster {

/// Threads that run the numbered parts of a task while their owner does something else. Idle
/// threads sleep.
class WorkerThreads {
public:
  explicit WorkerThreads(int threads); // with 0, start() runs all parts itself
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  /// Starts part(i) for each i in [0, count), in roughly this order. The caller must call finish()
  /// afterwards. `part` must not throw.
  void start(std::size_t count, std::function<void(std::size_t)> part);
  /// Helps with the remaining parts, and returns when all are done.
  void finish();

private:
  void serve(const std::stop_token& stop);
  void work();

  std::function<void(std::size_t)> part_;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_; // guards the two below; between rounds also part_ and count_
  std::uint64_t round_ = 0;
  std::size_t working_ = 0;
  std::condition_variable_any begun_, ended_;
  std::vector<std::jthread> threads_; // must be last: the threads use all members above
};

} // namespace troupe::env::caster
