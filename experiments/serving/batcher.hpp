#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "experiments/serving/served_policy.hpp"

namespace troupe::experiments::serving {

/// An observation that waits for its action.
struct Job {
  std::vector<std::byte> observation; // complete, in the layout of the policy's spec
  std::vector<float> state;           // memory before the step; the policy replaces it
  std::vector<float> action;          // the result
  std::string error;                  // the reason if there is no result
  std::function<void(Job&)> done;     // called once, on any thread
};

/// Gathers jobs from many threads into batches, without a thread of its own and without waiting: a
/// thread that submits a job while the policy is idle computes it immediately, and then computes
/// all jobs that other threads have submitted meanwhile as one batch. An idle server answers
/// without delay, and batches grow with the load.
class Batcher {
public:
  struct Limits {
    std::size_t batch = 64;     // maximum number of jobs computed together
    std::size_t queued = 4'096; // maximum number of waiting jobs
  };
  /// `observe` is called with the size of each batch; it may be empty.
  Batcher(std::unique_ptr<ServedPolicy> policy, const Limits& limits,
          std::function<void(std::size_t)> observe = {});

  const ServedPolicy& policy() const { return *policy_; }
  std::size_t queued() const;

  /// Adds all of the jobs or none; jobs that were added together are computed one after another.
  /// Returns false, and adds none, if too many jobs are waiting.
  bool submit(std::vector<Job> jobs);

private:
  void compute(std::span<Job> batch);

  std::unique_ptr<ServedPolicy> policy_;
  Limits limits_;
  std::function<void(std::size_t)> observe_;
  mutable std::mutex mutex_;
  std::deque<Job> jobs_;
  bool busy_ = false;
};

} // namespace troupe::experiments::serving
