#include "collectives/shared_memory/shared_memory_rendezvous.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace troupe::collectives {
namespace {

constexpr std::chrono::microseconds kSharedSpin{5};   // a rank with its own core answers by then
constexpr std::chrono::microseconds kSharedYield{60}; // about what a sleep and its wake-up cost
constexpr int kYieldsOfMany = 2;                      // if ranks share cores, let others run
constexpr int kReasonLooks = 1000;                    // waits for a reason being written

void relax_shared() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::uint32_t* word(std::atomic<std::uint32_t>& value) {
  return reinterpret_cast<std::uint32_t*>(&value);
}

/// Sleeps while `value` equals `seen`, for at most `most`. Returns false if that time has passed.
bool sleep_on(std::atomic<std::uint32_t>& value, std::uint32_t seen,
              std::chrono::nanoseconds most) {
  const timespec limit{static_cast<time_t>(most.count() / 1'000'000'000),
                       static_cast<long>(most.count() % 1'000'000'000)};
  return syscall(SYS_futex, word(value), FUTEX_WAIT, seen, &limit, nullptr, 0) == 0
         || errno != ETIMEDOUT;
}

void wake_all(std::atomic<std::uint32_t>& value) {
  syscall(SYS_futex, word(value), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

} // namespace

SharedMemoryRendezvous::SharedMemoryRendezvous(std::shared_ptr<SharedSegment> segment, int rank,
                                               std::chrono::milliseconds timeout)
    : segment_(std::move(segment)),
      header_(segment_->header()),
      rank_(rank),
      timeout_(timeout),
      spins_(usable_cores() >= segment_->size()) {}

SharedMemoryRendezvous::~SharedMemoryRendezvous() {
  rank(rank_).left.store(1);
  ring();
}

void SharedMemoryRendezvous::ring() {
  header_.bell.fetch_add(1);
  if (header_.sleepers.load() > 0)
    wake_all(header_.bell);
}

void SharedMemoryRendezvous::meet(const FlatCall& call) {
  check();
  ++calls_;
  auto& mine = call_of(rank_);
  mine.fingerprint = call.fingerprint;
  if (call.fingerprint.kind == Kind::all_to_all) {
    std::copy(call.in_splits.begin(), call.in_splits.end(), mine.in_splits.begin());
    std::copy(call.out_splits.begin(), call.out_splits.end(), mine.out_splits.begin());
  }
  arrive(true);
}

void SharedMemoryRendezvous::step() {
  arrive(false);
}

void SharedMemoryRendezvous::arrive(bool compare) {
  const auto ranks = static_cast<std::uint64_t>(segment_->size());
  ++meetings_;
  rank(rank_).arrived.store(meetings_, std::memory_order_release);
  const auto arrivals = header_.arrivals.fetch_add(1) + 1;
  if (arrivals > meetings_ * ranks || arrivals <= (meetings_ - 1) * ranks)
    fail(call_name(call_of(rank_).fingerprint)
         + ": the shared memory was overwritten; a rank wrote where it must not");
  if (arrivals < meetings_ * ranks)
    return wait();
  if (compare)
    compare_calls();
  check();
  header_.generation.store(meetings_);
  ring();
}

void SharedMemoryRendezvous::compare_calls() {
  std::array<Fingerprint, kMostSharedRanks> calls;
  const auto size = static_cast<std::size_t>(segment_->size());
  for (std::size_t i = 0; i < size; ++i)
    calls[i] = call_of(static_cast<int>(i)).fingerprint;
  if (const auto mismatch = describe_mismatch(std::span(calls).first(size)); !mismatch.empty())
    fail(mismatch);
  if (calls[0].kind != Kind::all_to_all)
    return;
  for (std::size_t from = 0; from < size; ++from)
    for (std::size_t to = 0; to < size; ++to) {
      const auto sent = call_of(static_cast<int>(from)).in_splits[to];
      const auto taken = call_of(static_cast<int>(to)).out_splits[from];
      if (sent != taken)
        fail(describe_splits(static_cast<int>(from), static_cast<int>(to), sent, taken));
    }
}

std::size_t SharedMemoryRendezvous::largest_split() const {
  std::size_t largest = 0;
  const auto size = static_cast<std::size_t>(segment_->size());
  for (std::size_t from = 0; from < size; ++from)
    for (std::size_t to = 0; to < size; ++to)
      largest = std::max<std::size_t>(largest, call_of(static_cast<int>(from)).in_splits[to]);
  return largest;
}

/// Returns true if all ranks have arrived, false if it is time to sleep.
bool SharedMemoryRendezvous::spin(std::uint64_t meeting) const {
  const auto passed = [&] { return header_.generation.load(std::memory_order_acquire) >= meeting; };
  if (!spins_) {
    for (int i = 0; i < kYieldsOfMany && !passed(); ++i)
      std::this_thread::yield();
    return passed();
  }
  const auto start = Clock::now();
  for (auto waited = Clock::duration::zero(); waited < kSharedYield;
       waited = Clock::now() - start) {
    for (int i = 0; i < 32; ++i) {
      if (passed())
        return true;
      relax_shared();
    }
    if (header_.poison.load(std::memory_order_relaxed) != 0)
      return false;
    if (waited > kSharedSpin)
      std::this_thread::yield(); // the other rank may need this core
  }
  return passed();
}

void SharedMemoryRendezvous::wait() {
  if (spin(meetings_))
    return;
  const auto deadline = Clock::now() + timeout_;
  for (bool silent = false;;) {
    header_.sleepers.fetch_add(1);
    const auto seen = header_.bell.load();
    const bool passed = header_.generation.load() >= meetings_;
    if (!passed) {
      try {
        look(deadline, silent);
      } catch (...) {
        header_.sleepers.fetch_sub(1);
        throw;
      }
      silent = !sleep_on(
          header_.bell, seen,
          std::clamp<Clock::duration>(deadline - Clock::now(), Clock::duration(1), kLook));
    }
    header_.sleepers.fetch_sub(1);
    if (passed)
      return;
  }
}

/// Throws if waiting longer is pointless. `silent` means that no rank has rung the bell within
/// kLook.
void SharedMemoryRendezvous::look(Clock::time_point deadline, bool silent) {
  check();
  const auto mine = call_name(call_of(rank_).fingerprint);
  for (int other = 0; other < segment_->size(); ++other)
    if (rank(other).left.load() != 0
        && rank(other).arrived.load(std::memory_order_acquire) < meetings_)
      fail(mine + ": rank " + std::to_string(other) + " has left; its communicator was destroyed");
  const int dead = silent ? segment_->dead() : -1;
  if (header_.generation.load() >= meetings_)
    return;
  if (dead >= 0)
    fail(mine + ": rank " + std::to_string(dead) + " died or left while rank "
         + std::to_string(rank_) + " waited for it");
  if (Clock::now() < deadline)
    return;
  std::array<Fingerprint, kMostSharedRanks> calls;
  std::array<char, kMostSharedRanks> arrived{};
  const auto size = static_cast<std::size_t>(segment_->size());
  for (std::size_t i = 0; i < size; ++i)
    if (rank(static_cast<int>(i)).arrived.load(std::memory_order_acquire) >= meetings_) {
      arrived[i] = 1;
      calls[i] = call_of(static_cast<int>(i)).fingerprint;
    }
  if (std::count(arrived.begin(), arrived.begin() + segment_->size(), 1) < segment_->size())
    fail(describe_late(std::span(calls).first(size), std::span(arrived).first(size), timeout_));
  fail(mine + ": all ranks arrived, but the last one stopped before it released the others, or a "
       + "rank wrote into the shared memory where it must not");
}

void SharedMemoryRendezvous::poison(const std::string& message) {
  std::uint32_t healthy = 0;
  if (!header_.poison.compare_exchange_strong(healthy, 1))
    return;
  const auto length = std::min(message.size(), header_.reason.size() - 1);
  std::memcpy(header_.reason.data(), message.data(), length);
  header_.reason[length] = 0;
  header_.poison.store(2);
  ring();
}

void SharedMemoryRendezvous::fail(const std::string& message) {
  poison(message);
  check();
  throw CollectiveError(message);
}

void SharedMemoryRendezvous::check() {
  auto state = header_.poison.load(std::memory_order_acquire);
  if (state == 0)
    return;
  for (int i = 0; state == 1 && i < kReasonLooks; ++i) {
    sleep_on(header_.poison, 1, std::chrono::microseconds(100));
    state = header_.poison.load(std::memory_order_acquire);
  }
  if (state == 1)
    throw CollectiveError("a rank died while it was reporting why it failed");
  const auto& reason = header_.reason;
  throw CollectiveError(std::string(reason.begin(), std::find(reason.begin(), reason.end(), 0)));
}

} // namespace troupe::collectives
