#include "learner/gradients/bucket_tuner.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::learner {

BucketTuner::BucketTuner(std::vector<std::int64_t> sizes, int steps_each, int ignored)
    : sizes_(std::move(sizes)), steps_each_(steps_each), ignored_(ignored) {
  if (sizes_.empty() || steps_each_ < 1 || ignored_ < 0)
    throw std::invalid_argument("BucketTuner: needs a size to try and a step to try it for");
}

bool BucketTuner::add(double seconds) {
  if (done_)
    return false;
  seconds_.push_back(seconds);
  if (seconds_.size() < static_cast<std::size_t>(steps_each_ + ignored_))
    return false;
  const auto begin = seconds_.begin() + ignored_;
  const auto middle = begin + steps_each_ / 2;
  std::nth_element(begin, middle, seconds_.end());
  medians_.push_back(*middle);
  seconds_.clear();
  if (index_ + 1 < sizes_.size())
    ++index_;
  else
    done_ = true;
  return true;
}

std::size_t BucketTuner::fastest() const {
  return static_cast<std::size_t>(std::min_element(medians_.begin(), medians_.end())
                                  - medians_.begin());
}

void BucketTuner::settle(std::size_t index) {
  index_ = std::min(index, sizes_.size() - 1);
}

} // namespace troupe::learner
