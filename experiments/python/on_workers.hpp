#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::python {

/// Calls work(worker, next) on `workers` threads, one of which is the caller's. Each takes pieces
/// of work by `i = next++` while i < count. After an exception, which is rethrown, no further
/// pieces are taken.
template <typename Work>
void on_workers(std::size_t workers, std::size_t count, const Work& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex failure_mutex;
  std::exception_ptr failure;
  const auto guarded = [&](std::size_t worker) {
    try {
      work(worker, next);
    } catch (...) {
      const std::lock_guard lock(failure_mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t worker = 1; worker < workers; ++worker)
      others.emplace_back(guarded, worker);
    guarded(0);
  }
  if (failure)
    std::rethrow_exception(failure);
}

} // namespace troupe::python
