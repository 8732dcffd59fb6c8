#include "env/caster/cuda/worker_threads.hpp"

#include <utility>

namespace troupe::env::caster {

WorkerThreads::WorkerThreads(int threads) {
  for (int i = 0; i < threads; ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
}

WorkerThreads::~WorkerThreads() = default; // jthreads stop and join

void WorkerThreads::start(std::size_t count, std::function<void(std::size_t)> part) {
  {
    const std::lock_guard lock(mutex_);
    part_ = std::move(part);
    count_ = count;
    next_ = 0;
    working_ = threads_.size();
    ++round_;
  }
  begun_.notify_all();
  if (threads_.empty())
    work();
}

void WorkerThreads::finish() {
  work();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return working_ == 0; });
}

void WorkerThreads::work() {
  for (std::size_t i = next_++; i < count_; i = next_++)
    part_(i);
}

void WorkerThreads::serve(const std::stop_token& stop) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (begun_.wait(lock, stop, [&] { return round_ != seen; })) {
    seen = round_;
    lock.unlock();
    work();
    lock.lock();
    if (--working_ == 0)
      ended_.notify_all();
  }
}

} // namespace troupe::env::caster
