#include "learner/replicas/thread_choice.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <utility>

namespace troupe::learner {
namespace {

/// Seconds that a step takes with `threads`, in step number `step`.
using Duration = std::function<double(int threads, int step)>;

struct Outcome {
  double seconds = 0;
  int at_most = 0; // number of steps with all threads
  int last = 0;    // number of threads in the last step
};

Outcome simulated(ThreadChoice& choice, int steps, const Duration& duration, int first = 0) {
  Outcome outcome;
  for (int i = first; i < first + steps; ++i) {
    outcome.last = choice.threads();
    const double seconds = duration(outcome.last, i);
    choice.took(seconds);
    outcome.seconds += seconds;
    outcome.at_most += outcome.last > 1 ? 1 : 0;
  }
  return outcome;
}

double idle(int threads, int) {
  return .01 / threads;
}

double shared(int threads, int) { // other programs keep the processors busy
  return threads == 1 ? .02 : .2;
}

double uneven(int threads, int step) { // every second step updates the policy as well
  return idle(threads, step) * (step % 2 == 0 ? .8 : 1.2);
}

} // namespace

TEST_CASE("On idle processors, the thread choice stays at the maximum") {
  for (const Duration duration : {idle, uneven}) {
    ThreadChoice choice(2);
    const auto outcome = simulated(choice, 4000, duration);
    CHECK(outcome.seconds < 1.02 * 4000 * .005);
    CHECK(outcome.at_most > 3900);
  }
}

TEST_CASE("On shared processors, two threads cost little more than one") {
  ThreadChoice choice(2);
  const auto outcome = simulated(choice, 8000, shared);
  CHECK(outcome.last == 1);
  CHECK(outcome.seconds < 1.05 * 8000 * .02);
}

TEST_CASE("The thread choice adapts to programs that start and end") {
  ThreadChoice choice(2);
  simulated(choice, 3000, idle);
  const auto busy = simulated(choice, 200, shared, 3000);
  CHECK(busy.last == 1);
  CHECK(busy.at_most < 40);
  simulated(choice, 2048, idle, 3200);
  CHECK(simulated(choice, 100, idle, 5248).at_most > 90);
}

TEST_CASE("A trial survives a slow first step, which wakes the threads") {
  ThreadChoice choice(2);
  CHECK(simulated(choice, 200, shared).last == 1);
  int before = 1;
  const auto waking = [&before](int threads, int step) {
    return idle(threads, step) * (std::exchange(before, threads) < threads ? 3 : 1);
  };
  simulated(choice, 2048, waking);
  CHECK(simulated(choice, 100, waking).at_most > 90);
}

TEST_CASE("Among twelve threads, the thread choice finds the fastest number") {
  ThreadChoice choice(12);
  const auto fastest = [](int threads, int step) {
    return .01 * (1 + std::abs(std::log2(threads / (step < 2000 ? 2. : 8.))));
  };
  CHECK(choice.threads() == 12);
  CHECK(simulated(choice, 2000, fastest).last == 2);
  simulated(choice, 6000, fastest, 2000);
  CHECK(simulated(choice, 100, fastest, 8000).seconds < 1.05);
}

TEST_CASE("A fixed number of threads does not change and is at least one") {
  ThreadChoice fixed(4, true);
  const auto outcome = simulated(fixed, 500, shared);
  CHECK(outcome.at_most == 500);
  CHECK(fixed.threads() == 4);
  ThreadChoice one(1);
  CHECK(simulated(one, 500, idle).last == 1);
  CHECK_THROWS_AS(ThreadChoice(0), std::invalid_argument);
}

} // namespace troupe::learner
