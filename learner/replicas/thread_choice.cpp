#include "learner/replicas/thread_choice.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>

#include <ATen/Parallel.h>

namespace troupe::learner {
namespace {

constexpr std::int64_t kFirstTrial = 4, kFirstPeriod = 16, kLongestPeriod = 2048; // steps
constexpr std::size_t kTrialSteps = 5; // the first one wakes the threads and does not count
constexpr double kTooSlow = 1.5;       // times the usual duration; ends a trial, or starts one
constexpr double kTooSlowFirst = 4;    // times the usual duration; ends a trial at its first step
constexpr double kFaster = 0.95;       // fraction of the usual duration that is worth a change
constexpr double kUsualShare = 1. / 32, kRecentShare = 1. / 4; // weights of a new duration

} // namespace

ThreadChoice::ThreadChoice(int most, bool fixed) : period_(kFirstPeriod), left_(kFirstTrial) {
  if (most < 1)
    throw std::invalid_argument("threads " + std::to_string(most) + " must be at least 1");
  for (int threads = 1; threads < most && !fixed; threads *= 2)
    numbers_.push_back(threads);
  numbers_.push_back(most);
  current_ = tried_ = numbers_.size() - 1;
}

int ThreadChoice::threads() const {
  return numbers_[tried_];
}

void ThreadChoice::took(double seconds) {
  if (numbers_.size() == 1)
    return;
  if (tried_ != current_)
    took_trial(seconds);
  else
    took_usual(seconds);
}

void ThreadChoice::took_usual(double seconds) {
  if (usual_ == 0) {
    usual_ = recent_ = seconds;
    return;
  }
  usual_ += (seconds - usual_) * kUsualShare;
  recent_ += (seconds - recent_) * kRecentShare;
  if (current_ > 0 && recent_ > kTooSlow * usual_) { // other programs may have started
    usual_ = recent_;
    period_ = kFirstPeriod;
    downwards_ = true;
    left_ = 0;
  }
  if (--left_ <= 0)
    begin_trial();
}

void ThreadChoice::begin_trial() {
  if (current_ == 0)
    downwards_ = false;
  else if (current_ + 1 == numbers_.size())
    downwards_ = true;
  tried_ = downwards_ ? current_ - 1 : current_ + 1;
  trial_.clear();
}

void ThreadChoice::took_trial(double seconds) {
  trial_.push_back(seconds);
  if (seconds > (trial_.size() == 1 ? kTooSlowFirst : kTooSlow) * recent_)
    return end_trial(false, seconds);
  if (trial_.size() < kTrialSteps)
    return;
  const double mean = std::accumulate(trial_.begin() + 1, trial_.end(), 0.) / (kTrialSteps - 1);
  end_trial(mean < kFaster * recent_, mean);
}

void ThreadChoice::end_trial(bool faster, double seconds) {
  if (faster) {
    current_ = tried_;
    usual_ = recent_ = seconds;
    period_ = kFirstPeriod;
  } else {
    tried_ = current_;
    downwards_ = !downwards_;
    period_ = std::min(2 * period_, kLongestPeriod);
  }
  left_ = period_;
}

void ThreadChoice::run(const std::function<void()>& step) {
  if (numbers_.size() == 1)
    return step();
  if (at::get_num_threads() != threads())
    at::set_num_threads(threads());
  const auto start = std::chrono::steady_clock::now();
  step();
  took(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

} // namespace troupe::learner
