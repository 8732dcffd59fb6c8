// A control loop on Linux around an exported policy: fixed period, no allocation, and a report of
// its punctuality. Replace Machine with your robot.
//
//   realtime_loop [seconds, default 5] [period in microseconds, default the policy's]
//
// The thread runs under SCHED_FIFO with locked memory if it is allowed to (CAP_SYS_NICE, or
// `ulimit -r`). Prints one line of JSON. Exit code 0: success; 1: the machine does not fit the
// policy; 2: wrong arguments.
#include "policy.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

using Policy = POLICY::Policy;
constexpr std::int64_t kSecond = 1'000'000'000; // nanoseconds
constexpr int kPriority = 80;                   // 1 to 99

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

void sleep_until(std::int64_t nanoseconds) {
  const timespec time{static_cast<time_t>(nanoseconds / kSecond),
                      static_cast<long>(nanoseconds % kSecond)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0) {
  }
}

bool become_realtime() {
  sched_param priority{};
  priority.sched_priority = kPriority;
  return mlockall(MCL_CURRENT | MCL_FUTURE) == 0
         && pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) == 0;
}

/// Provides observations and executes actions. This one returns its last action as the observation.
class Machine {
public:
  /// For a robot: the names of its sensors and motors, from its own description.
  static troupe_policy::Contract contract() { return POLICY::kContract; }

  const Policy::Frame* frame() const { return frame_; }
  const float* vectors() const { return vectors_; }
  float* action() { return action_; }
  void apply() {
    for (int i = 0; i < Policy::kFrameSize; ++i)
      frame_[i] = static_cast<Policy::Frame>(action_[i % Policy::kActionSize] * 0.5F);
  }

private:
  Policy::Frame frame_[Policy::kFrameSize] = {};
  float vectors_[Policy::kVectorSize + 1] = {};
  float action_[Policy::kActionSize] = {};
};

/// A histogram of durations with 8 bins per power of two: 512 counters for 1 ns to 2^64 ns within
/// 12.5 %.
class Durations {
public:
  void add(std::int64_t nanoseconds) {
    const auto value = static_cast<std::uint64_t>(nanoseconds > 8 ? nanoseconds : 8);
    int power = 63;
    while ((value >> power) == 0)
      --power;
    ++counts_[(power - 3) * 8 + static_cast<int>((value >> (power - 3)) & 7U)];
    ++count_;
    greatest_ = nanoseconds > greatest_ ? nanoseconds : greatest_;
  }
  /// The quantile in microseconds, rounded down to a bin's lower bound.
  double quantile(double part) const {
    std::int64_t left = static_cast<std::int64_t>(part * static_cast<double>(count_));
    for (int i = 0; i < 512; ++i)
      if ((left -= counts_[i]) < 0)
        return static_cast<double>((8ULL + static_cast<unsigned>(i % 8)) << (i / 8)) / 1000;
    return greatest();
  }
  double greatest() const { return static_cast<double>(greatest_) / 1000; }

private:
  std::int64_t counts_[512] = {};
  std::int64_t count_ = 0;
  std::int64_t greatest_ = 0;
};

Policy agent;
Machine machine;
Durations lateness, work;

} // namespace

int main(int count, char** arguments) {
  const double seconds = count > 1 ? std::atof(arguments[1]) : 5;
  const double period_us =
      count > 2 ? std::atof(arguments[2]) : POLICY::kContract.control_period_seconds * 1e6;
  if (count > 3 || !(seconds > 0 && seconds <= 1e6) || !(period_us >= 1 && period_us <= 1e9)) {
    std::fprintf(stderr, "usage: realtime_loop [seconds above 0] [period, 1 to 1e9 microseconds; "
                         "needed where the environment has none]\n");
    return 2;
  }
  char why[256] = "";
  if (!check_contract(POLICY::kContract, Machine::contract(), why, sizeof why)) {
    std::fprintf(stderr, "realtime_loop: %s\n", why);
    return 1;
  }
  const bool realtime = become_realtime();
  const auto period = static_cast<std::int64_t>(period_us * 1000);
  const std::int64_t begin = now() + period;
  const auto steps = static_cast<std::int64_t>(seconds * 1e9) / period + 1;
  std::int64_t missed = 0;
  std::int64_t refused = 0;
  agent.reset();
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t due = begin + step * period;
    sleep_until(due);
    const std::int64_t woken = now();
    if (agent.step(machine.frame(), machine.vectors(), machine.action()))
      machine.apply();
    else
      ++refused; // keep the last action, or stop the machine
    const std::int64_t done = now();
    lateness.add(woken - due);
    work.add(done - woken);
    missed += done > due + period ? 1 : 0;
  }
  std::printf(
      "{\"task\": \"%s\", \"steps\": %lld, \"period_us\": %g, \"sched_fifo\": %s, "
      "\"missed_deadlines\": %lld, \"refused_observations\": %lld, \"jitter_p50_us\": %.1f, "
      "\"jitter_p99_us\": %.1f, \"jitter_max_us\": %.1f, \"step_p50_us\": %.3f, "
      "\"step_p99_us\": %.3f, \"step_max_us\": %.1f}\n",
      POLICY::kContract.task, static_cast<long long>(steps), period_us, realtime ? "true" : "false",
      static_cast<long long>(missed), static_cast<long long>(refused), lateness.quantile(0.5),
      lateness.quantile(0.99), lateness.greatest(), work.quantile(0.5), work.quantile(0.99),
      work.greatest());
  return 0;
}
