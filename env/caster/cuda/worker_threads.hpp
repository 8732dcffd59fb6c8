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

/// Threads that do numbered parts of some work while their owner does something else. Threads
/// without work sleep.
class WorkerThreads {
public:
  explicit WorkerThreads(int threads); // 0: the owner does all in start()
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  /// part(i) for each i in [0, count), in about this order; finish() must follow. `part` must not
  /// throw.
  void start(std::size_t count, std::function<void(std::size_t)> part);
  /// Does parts that are left, and returns when all are done.
  void finish();

private:
  void serve(const std::stop_token& stop);
  void work();

  std::function<void(std::size_t)> part_;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_; // guards the two below, and part_ and count_ between rounds
  std::uint64_t round_ = 0;
  std::size_t working_ = 0;
  std::condition_variable_any begun_, ended_;
  std::vector<std::jthread> threads_; // last: they use all of the above
};

} // namespace troupe::env::caster
