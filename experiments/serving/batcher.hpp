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

/// An observation on its way to an action.
struct Job {
  std::vector<std::byte> observation; // whole, as the policy's spec lays it out
  std::vector<float> state;           // before; the policy replaces it
  std::vector<float> action;          // the result
  std::string error;                  // or why there is none
  std::function<void(Job&)> done;     // called once, on any thread
};

/// Gathers the jobs of many threads into batches, without a thread and without waiting: the thread
/// whose job finds the policy idle computes it at once, and then what others have brought
/// meanwhile, together. A quiet server answers without delay, and batches grow with the load.
class Batcher {
public:
  struct Limits {
    std::size_t batch = 64;     // jobs that are computed together
    std::size_t queued = 4'096; // jobs that wait
  };
  /// `observe` may be empty: called with the size of each batch.
  Batcher(std::unique_ptr<ServedPolicy> policy, const Limits& limits,
          std::function<void(std::size_t)> observe = {});

  const ServedPolicy& policy() const { return *policy_; }
  std::size_t queued() const;

  /// False if as many jobs as the limit wait: none is added then. All of them are added, or none,
  /// and they are done one after another.
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
