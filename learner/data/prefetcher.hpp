#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

struct PrefetchOptions {
  int threads = 1;                   // number of threads that make batches
  int ahead = 2;                     // batches that are ready or in preparation; >= threads
  std::chrono::seconds timeout{600}; // maximum wait of next() for a batch
};

/// Makes batches 0, 1, 2, … ahead on separate threads and returns them in order. The number of
/// threads changes neither the batches nor their order. One thread calls next().
class Prefetcher {
public:
  /// Returns the batch with this number. Several threads call it at the same time, each with
  /// another number.
  using Make = std::function<TensorMap(std::int64_t number)>;

  /// Makes batches `first` to `end` - 1. Throws std::invalid_argument naming the option that is out
  /// of range.
  Prefetcher(std::int64_t first, std::int64_t end, Make make, const PrefetchOptions& options = {});
  /// Waits for the batches in preparation.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Returns the next batch, or an empty map at the end. Rethrows the exception of Make, again at
  /// every further call. Throws std::runtime_error after options.timeout.
  TensorMap next();

private:
  struct Slot {
    bool ready = false;
    TensorMap batch;
    std::exception_ptr error;
  };

  void work(const std::stop_token& stop);
  Slot& slot(std::int64_t number) {
    return slots_[static_cast<std::size_t>(number) % slots_.size()];
  }

  Make make_;
  PrefetchOptions options_;
  std::int64_t end_;
  std::mutex mutex_; // guards all members below
  std::condition_variable_any taken_;
  std::condition_variable_any made_;
  std::int64_t next_to_make_;
  std::int64_t next_to_take_;
  std::vector<Slot> slots_;           // batch i is in slot i modulo their number
  std::vector<std::jthread> threads_; // last: they must end before the members that they use
};

} // namespace troupe::learner
