#include "experiments/serving/batcher.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <utility>

namespace troupe::experiments::serving {
namespace {

/// Empty if all numbers are finite.
std::string why_not_finite(const Job& job) {
  const char* const why =
      " is not finite; its training has diverged, or the observation is too large";
  for (std::size_t i = 0; i < job.action.size(); ++i)
    if (!std::isfinite(job.action[i]))
      return "the policy's number " + std::to_string(i) + why;
  for (const float number : job.state)
    if (!std::isfinite(number))
      return std::string("the policy's memory") + why;
  return {};
}

} // namespace

Batcher::Batcher(std::unique_ptr<ServedPolicy> policy, const Limits& limits,
                 std::function<void(std::size_t)> observe, Later later)
    : policy_(std::move(policy)),
      limits_(limits),
      observe_(std::move(observe)),
      later_(std::move(later)) {}

std::size_t Batcher::queued() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}

bool Batcher::submit(std::vector<Job> jobs) {
  const std::size_t own = jobs.size();
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() + own > limits_.queued)
      return false;
    std::ranges::move(jobs, std::back_inserter(jobs_));
    if (std::exchange(busy_, true)) // they will be computed with the others
      return true;
  }
  work(own);
  return true;
}

/// Computes the first `least` jobs at least. A task continues with the others.
void Batcher::work(std::size_t least) {
  std::vector<Job> batch;
  std::unique_lock lock(mutex_);
  while (!jobs_.empty()) {
    if (least == 0 && later_) {
      lock.unlock();
      later_([self = shared_from_this()] { self->work(1); });
      return;
    }
    const std::size_t count = std::min(jobs_.size(), limits_.batch);
    const auto end = jobs_.begin() + static_cast<std::ptrdiff_t>(count);
    batch.assign(std::move_iterator(jobs_.begin()), std::move_iterator(end));
    jobs_.erase(jobs_.begin(), end);
    least -= std::min(least, count);
    lock.unlock();
    compute(batch);
    for (Job& job : batch)
      job.done(job);
    lock.lock();
  }
  busy_ = false;
}

void Batcher::compute(std::span<Job> batch) {
  if (!act(batch) && batch.size() > 1)
    for (Job& job : batch) // one observation must not fail the others
      act({&job, 1});
  if (observe_)
    observe_(batch.size());
}

/// Computes jobs together. Returns false if the policy throws: then they have only its error.
bool Batcher::act(std::span<Job> batch) {
  const std::size_t memory = policy_->state_size();
  const std::size_t size = policy_->action_size();
  std::vector<const std::byte*> observations;
  std::vector<float> states;
  std::vector<float> actions(batch.size() * size);
  for (const Job& job : batch) {
    observations.push_back(job.observation.data());
    states.insert(states.end(), job.state.begin(), job.state.end());
  }
  try {
    policy_->act(observations, states, actions);
  } catch (const std::exception& failure) {
    for (Job& job : batch)
      job.error = failure.what();
    return false;
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto action = actions.begin() + static_cast<std::ptrdiff_t>(i * size);
    batch[i].action.assign(action, action + static_cast<std::ptrdiff_t>(size));
    const auto state = states.begin() + static_cast<std::ptrdiff_t>(i * memory);
    batch[i].state.assign(state, state + static_cast<std::ptrdiff_t>(memory));
    batch[i].error = why_not_finite(batch[i]);
  }
  return true;
}

} // namespace troupe::experiments::serving
