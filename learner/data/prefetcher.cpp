#include "learner/data/prefetcher.hpp"

#include <pthread.h>

#include <algorithm>
#include <stdexcept>

namespace troupe::learner {

Prefetcher::Prefetcher(std::int64_t first, std::int64_t end, Make make,
                       const PrefetchOptions& options)
    : make_(std::move(make)),
      options_(options),
      end_(end),
      next_to_make_(first),
      next_to_take_(first) {
  if (options.threads < 1 || options.threads > 1024)
    throw std::invalid_argument("prefetch: threads " + std::to_string(options.threads)
                                + " must be from 1 to 1024");
  if (options.ahead < options.threads || options.ahead > 65536)
    throw std::invalid_argument("prefetch: ahead " + std::to_string(options.ahead)
                                + " must be from the number of threads, "
                                + std::to_string(options.threads) + ", to 65536");
  slots_.resize(static_cast<std::size_t>(options.ahead));
  for (int i = 0; i < options.threads && first < end; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    pthread_setname_np(threads_.back().native_handle(), "prefetch");
  }
}

Prefetcher::~Prefetcher() {
  for (auto& thread : threads_)
    thread.request_stop();
}

void Prefetcher::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto may_make = [&] {
      return next_to_make_ >= end_ || next_to_make_ < next_to_take_ + options_.ahead;
    };
    if (!taken_.wait(lock, stop, may_make) || next_to_make_ >= end_)
      return;
    const auto number = next_to_make_++;
    lock.unlock();
    Slot made;
    try {
      made.batch = make_(number);
    } catch (...) {
      made.error = std::current_exception();
    }
    made.ready = true;
    lock.lock();
    if (made.error)
      end_ = std::min(end_, next_to_make_); // later batches will never be taken
    slot(number) = std::move(made);
    made_.notify_all();
  }
}

TensorMap Prefetcher::next() {
  std::unique_lock lock(mutex_);
  if (next_to_take_ >= end_)
    return {};
  auto& wanted = slot(next_to_take_);
  if (!made_.wait_for(lock, options_.timeout, [&] { return wanted.ready; }))
    throw std::runtime_error("prefetch: batch " + std::to_string(next_to_take_)
                             + " was not ready after " + std::to_string(options_.timeout.count())
                             + " s; is the storage slow, or are there too few threads?");
  if (wanted.error)
    std::rethrow_exception(wanted.error);
  auto batch = std::move(wanted.batch);
  wanted = {};
  ++next_to_take_;
  lock.unlock();
  taken_.notify_all();
  return batch;
}

} // namespace troupe::learner
