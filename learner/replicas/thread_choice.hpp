#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace troupe::learner {

/// How many threads a replica's next step uses: the configured number, or a half, a quarter … of it
/// where that is faster. OpenMP's threads spin while they wait for each other, so two of them on
/// processors that other programs use can be 15 times slower than one.
///
/// Decides only from the durations of steps. Now and then, and at once when steps become slower, it
/// tries the next number for some steps and keeps the faster. An unsuccessful trial costs at most
/// one slow step and doubles the time until the next, so that at most a few percent are lost.
/// One thread owns it.
class ThreadChoice {
public:
  /// `fixed`: always `most`, for runs that must not depend on time. Throws std::invalid_argument
  /// for less than one thread.
  explicit ThreadChoice(int most, bool fixed = false);

  /// Of the next step.
  int threads() const;
  /// After each step: its duration.
  void took(double seconds);

  /// Runs `step` with LibTorch limited to threads() on this thread, and takes its time.
  void run(const std::function<void()>& step);

private:
  void took_usual(double seconds);
  void took_trial(double seconds);
  void begin_trial();
  void end_trial(bool faster, double seconds);

  std::vector<int> numbers_;  // of threads: 1, 2, 4 … most
  std::size_t current_;       // of numbers_
  std::size_t tried_;         // of numbers_; current_ when no trial is under way
  bool downwards_ = true;     // where the next trial goes
  double usual_ = 0;          // seconds of a step with the current number; 0: not known yet
  double recent_ = 0;         // the same, over fewer steps
  std::vector<double> trial_; // seconds of the trial's steps
  std::int64_t period_;       // steps between trials
  std::int64_t left_;         // steps until the next trial
};

} // namespace troupe::learner
