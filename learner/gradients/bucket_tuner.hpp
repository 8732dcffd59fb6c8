#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::learner {

/// Tries bucket sizes in turn, some steps each, and knows the fastest: the least median. Decides
/// from numbers; the owner measures. All replicas count the same steps, one of them measures.
class BucketTuner {
public:
  /// Throws std::invalid_argument unless there are sizes and steps_each is at least 1. The first
  /// `ignored` steps of each size are not counted.
  BucketTuner(std::vector<std::int64_t> sizes, int steps_each, int ignored = 1);

  std::int64_t current() const { return sizes_[index_]; } // bytes, to be used for the next step
  bool done() const { return done_; }

  /// A step with current() took so long. True when current() has changed, or all have been tried.
  bool add(double seconds);

  /// Once done: the fastest size, as chosen by the measuring replica.
  std::size_t fastest() const;
  void settle(std::size_t index);

private:
  std::vector<std::int64_t> sizes_;
  int steps_each_;
  int ignored_;
  std::size_t index_ = 0;
  bool done_ = false;
  std::vector<double> seconds_; // of the current size
  std::vector<double> medians_;
};

} // namespace troupe::learner
