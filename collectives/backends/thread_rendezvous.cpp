#include "collectives/backends/thread_rendezvous.hpp"

#include <algorithm>
#include <thread>

namespace troupe::collectives {
namespace {

constexpr std::chrono::microseconds kSpin{2};   // a rank with its own core answers within this time
constexpr std::chrono::microseconds kYield{30}; // about what a sleep and its wake-up cost

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace

ThreadRendezvous::ThreadRendezvous(int size, std::chrono::milliseconds timeout)
    : timeout_(timeout),
      spins_(std::thread::hardware_concurrency() >= static_cast<unsigned>(size)),
      slots_(static_cast<std::size_t>(size)),
      calls_(static_cast<std::size_t>(size)),
      arrived_(static_cast<std::size_t>(size)),
      left_(static_cast<std::size_t>(size)) {}

void ThreadRendezvous::meet(int rank, const Fingerprint& call, const std::function<void()>& last) {
  std::unique_lock lock(mutex_);
  check_locked();
  calls_[static_cast<std::size_t>(rank)] = call;
  arrived_[static_cast<std::size_t>(rank)] = 1;
  ++count_;
  if (const auto gone = std::find(left_.begin(), left_.end(), 1); gone != left_.end()) {
    poison_locked(call_name(call) + ": rank " + std::to_string(gone - left_.begin())
                  + " has left; its communicator is gone");
    check_locked();
  }
  if (count_ < size())
    return wait(lock, generation_.load(std::memory_order_relaxed), true);
  if (const auto mismatch = describe_mismatch(calls_); !mismatch.empty())
    poison_locked(mismatch);
  check_locked();
  try {
    last();
  } catch (const CollectiveError& error) {
    poison_locked(error.what());
    throw;
  }
  pass();
}

void ThreadRendezvous::part(int rank) {
  std::unique_lock lock(mutex_);
  arrived_[static_cast<std::size_t>(rank)] = 1;
  if (++count_ < size())
    return wait(lock, generation_.load(std::memory_order_relaxed), false);
  pass();
}

void ThreadRendezvous::pass() {
  std::fill(arrived_.begin(), arrived_.end(), 0);
  count_ = 0;
  generation_.fetch_add(1, std::memory_order_release);
  if (sleepers_ > 0)
    changed_.notify_all();
}

void ThreadRendezvous::wait(std::unique_lock<std::mutex>& lock, std::uint64_t generation,
                            bool interruptible) {
  const auto start = Clock::now();
  const auto over = [&] {
    return generation_.load(std::memory_order_acquire) != generation
           || (interruptible && poisoned_.load(std::memory_order_relaxed));
  };
  if (spins_) {
    lock.unlock();
    for (auto waited = Clock::duration::zero(); waited < kYield && !over();
         waited = Clock::now() - start) {
      for (int i = 0; i < 32 && !over(); ++i)
        relax();
      if (waited > kSpin)
        std::this_thread::yield(); // the other rank may need this core
    }
    if (generation_.load(std::memory_order_acquire) != generation)
      return;
    lock.lock();
  }
  ++sleepers_;
  const bool came = changed_.wait_until(lock, start + timeout_, over);
  --sleepers_;
  if (generation_.load(std::memory_order_relaxed) != generation)
    return;
  if (!came)
    poison_locked(describe_late(calls_, arrived_, timeout_));
  check_locked();
}

void ThreadRendezvous::poison_locked(const std::string& message) {
  if (poisoned_.load(std::memory_order_relaxed))
    return;
  message_ = message;
  poisoned_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void ThreadRendezvous::poison(const std::string& message) {
  const std::lock_guard lock(mutex_);
  poison_locked(message);
}

void ThreadRendezvous::leave(int rank) {
  const std::lock_guard lock(mutex_);
  left_[static_cast<std::size_t>(rank)] = 1;
  if (count_ > 0 && !arrived_[static_cast<std::size_t>(rank)]) {
    const auto waiting = std::find(arrived_.begin(), arrived_.end(), 1) - arrived_.begin();
    poison_locked(call_name(calls_[static_cast<std::size_t>(waiting)]) + ": rank "
                  + std::to_string(rank) + " has left; its communicator is gone");
  }
}

void ThreadRendezvous::check_locked() const {
  if (poisoned_.load(std::memory_order_relaxed))
    throw CollectiveError(message_);
}

} // namespace troupe::collectives
