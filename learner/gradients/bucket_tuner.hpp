#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::learner {

/// Tries bucket sizes in turn, some steps each, and selects the one with the smallest median step
/// time. The owner measures the times. All replicas count the same steps, but only one of them
/// measures.
class BucketTuner {
public:
  /// Tries each of `sizes` (bytes) for `steps_each` steps, of which the first `ignored` are not
  /// counted. Throws std::invalid_argument if there are no sizes or steps_each is below 1.
  BucketTuner(std::vector<std::int64_t> sizes, int steps_each, int ignored = 1);

  std::int64_t current() const { return sizes_[index_]; } // bytes, for the next step
  bool done() const { return done_; }

  /// Records the duration of a step with current(). Returns true if current() has changed or all
  /// sizes have been tried.
  bool add(double seconds);

  /// After done(): fastest() returns the index of the fastest size; settle() adopts the measuring
  /// replica's choice.
  std::size_t fastest() const;
  void settle(std::size_t index);

private:
  std::vector<std::int64_t> sizes_;
  int steps_each_;
  int ignored_;
  std::size_t index_ = 0;
  bool done_ = false;
  std::vector<double> seconds_; // of steps with the current size
  std::vector<double> medians_;
};

} // namespace troupe::learner
