#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "replay/gather.hpp"

namespace troupe::replay {

/// gather() by several threads, each a part of the rows: the same batch whatever their number. It
/// pays where items are encoded or on disk. One caller at a time.
class ParallelGather {
public:
  /// `threads` that gather, the caller's among them; throws std::invalid_argument below 1.
  explicit ParallelGather(int threads);
  ~ParallelGather();
  ParallelGather(const ParallelGather&) = delete;
  ParallelGather& operator=(const ParallelGather&) = delete;

  /// As gather(); what one part throws is thrown when all parts are done.
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

  std::vector<WindowReader> readers_; // one for each thread
  std::mutex mutex_;                  // of what follows
  std::condition_variable_any begun_, done_;
  const Work* work_ = nullptr;
  std::uint64_t round_ = 0;
  std::size_t left_ = 0; // parts that others do
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_; // last
};

} // namespace troupe::replay
