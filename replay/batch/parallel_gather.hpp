#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "replay/batch/gather.hpp"

namespace troupe::replay {

/// Runs gather() on several threads, each for a part of the rows. The batch does not depend on the
/// number of threads. Useful if items are encoded or on disk. One caller at a time.
class ParallelGather {
public:
  /// `threads` includes the calling thread. Throws std::invalid_argument if it is below 1.
  explicit ParallelGather(int threads);
  ~ParallelGather();
  ParallelGather(const ParallelGather&) = delete;
  ParallelGather& operator=(const ParallelGather&) = delete;

  /// Does the same as gather(). If a part throws, rethrows its exception once all parts are done.
  void operator()(const TransitionSpec& spec, std::span<const Item> items, const BatchView& batch,
                  std::int64_t first_row);

private:
  struct Work {
    const TransitionSpec& spec;
    std::span<const Item> items;
    const BatchView& batch;
    std::int64_t first_row;
  };
  void serve(const std::stop_token& stop, std::size_t part);
  std::exception_ptr do_part(const Work& work, std::size_t part);

  std::vector<WindowReader> readers_; // one per thread
  std::mutex mutex_;                  // guards the members below
  std::condition_variable_any begun_, done_;
  const Work* work_ = nullptr;
  std::uint64_t round_ = 0;
  std::size_t left_ = 0; // parts that are not done on other threads
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_; // destroyed first
};

} // namespace troupe::replay
