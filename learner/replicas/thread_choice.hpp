#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace troupe::learner {

/// Chooses how many threads a replica's next step uses: the configured number, or half or a quarter
/// of it, and so on, if that is faster. OpenMP's threads spin while they wait for each other, so
/// two threads on processors that other programs also use can be 15 times slower than one.
///
/// The choice depends only on the durations of steps. From time to time, and immediately when steps
/// become slower, it tries the next number for some steps and keeps the faster one. An unsuccessful
/// trial costs at most one slow step and doubles the time until the next trial, so at most a few
/// percent are lost. A single thread owns this object.
class ThreadChoice {
public:
  /// `fixed` always uses `most` threads, for runs that must not depend on timing. Throws
  /// std::invalid_argument for less than one thread.
  explicit ThreadChoice(int most, bool fixed = false);

  /// The number of threads for the next step.
  int threads() const;
  /// Records the duration of a step. Call it after each step.
  void took(double seconds);

  /// Runs `step` with LibTorch limited to threads() on this thread, and records its duration.
  void run(const std::function<void()>& step);

private:
  void took_usual(double seconds);
  void took_trial(double seconds);
  void begin_trial();
  void end_trial(bool faster, double seconds);

  std::vector<int> numbers_;  // candidate numbers of threads: 1, 2, 4 … most
  std::size_t current_;       // index into numbers_
  std::size_t tried_;         // index into numbers_; equals current_ outside a trial
  bool downwards_ = true;     // whether the next trial uses fewer threads
  double usual_ = 0;          // average seconds per step with the current number; 0: unknown
  double recent_ = 0;         // average over fewer steps
  std::vector<double> trial_; // seconds of the trial's steps
  std::int64_t period_;       // steps between trials
  std::int64_t left_;         // steps until the next trial
};

} // namespace troupe::learner
