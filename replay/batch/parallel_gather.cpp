#include "replay/batch/parallel_gather.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace troupe::replay {

ParallelGather::ParallelGather(int threads) {
  if (threads < 1)
    throw std::invalid_argument("gathering threads are " + std::to_string(threads)
                                + " but must be at least 1");
  readers_.resize(static_cast<std::size_t>(threads));
  for (std::size_t part = 1; part < readers_.size(); ++part)
    threads_.emplace_back([this, part](const std::stop_token& stop) { serve(stop, part); });
}

ParallelGather::~ParallelGather() = default;

std::exception_ptr ParallelGather::do_part(const Work& work, std::size_t part) {
  const std::size_t first = work.items.size() * part / readers_.size();
  const std::size_t end = work.items.size() * (part + 1) / readers_.size();
  try {
    gather(work.spec, work.items.subspan(first, end - first), work.batch,
           work.first_row + static_cast<std::int64_t>(first), &readers_[part]);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void ParallelGather::serve(const std::stop_token& stop, std::size_t part) {
  for (std::uint64_t seen = 0;; ++seen) {
    const Work* work = nullptr;
    {
      std::unique_lock lock(mutex_);
      if (!begun_.wait(lock, stop, [&] { return round_ > seen; }))
        return;
      work = work_;
    }
    const std::exception_ptr failure = do_part(*work, part);
    const std::scoped_lock lock(mutex_);
    if (failure && !failure_)
      failure_ = failure;
    if (--left_ == 0)
      done_.notify_one();
  }
}

void ParallelGather::operator()(const TransitionSpec& spec, std::span<const Item> items,
                                const BatchView& batch, std::int64_t first_row) {
  const Work work{spec, items, batch, first_row};
  if (!threads_.empty()) {
    const std::scoped_lock lock(mutex_);
    work_ = &work;
    left_ = threads_.size();
    ++round_;
    begun_.notify_all();
  }
  std::exception_ptr failure = do_part(work, 0);
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return left_ == 0; });
    if (const std::exception_ptr other = std::exchange(failure_, nullptr); other && !failure)
      failure = other;
  }
  if (failure)
    std::rethrow_exception(failure);
}

} // namespace troupe::replay
