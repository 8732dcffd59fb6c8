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
  std::vector<float> state;           // memory before the step, then after it
  std::vector<float> action;          // the result
  std::string error;                  // the reason if there is no result
  std::function<void(Job&)> done;     // called once, on any thread
};

/// Gathers jobs from many threads into batches, without a thread of its own and without waiting: a
/// thread that submits jobs while the policy is idle computes them immediately. Jobs that other
/// threads have submitted meanwhile are computed as one batch, by a task for any thread, so that no
/// thread is kept from its own work while others submit. An idle server answers without delay, and
/// batches grow with the load.
class Batcher : public std::enable_shared_from_this<Batcher> {
public:
  struct Limits {
    std::size_t batch = 64;     // maximum number of jobs computed together
    std::size_t queued = 4'096; // maximum number of waiting jobs
  };
  /// Has a task called soon, on any thread, but not before it returns.
  using Later = std::function<void(std::function<void()> task)>;

  /// `observe` is called with the size of each batch; it may be empty. If `later` is empty, the
  /// thread that computes its own jobs computes all others, too; otherwise a std::shared_ptr must
  /// own the batcher, and tasks share it.
  Batcher(std::unique_ptr<ServedPolicy> policy, const Limits& limits,
          std::function<void(std::size_t)> observe = {}, Later later = {});

  const ServedPolicy& policy() const { return *policy_; }
  std::size_t queued() const;

  /// Adds all of the jobs or none; jobs that were added together are computed one after another.
  /// Returns false, and adds none, if too many jobs are waiting.
  bool submit(std::vector<Job> jobs);

private:
  void work(std::size_t least);
  void compute(std::span<Job> batch);
  bool act(std::span<Job> batch);

  std::unique_ptr<ServedPolicy> policy_;
  Limits limits_;
  std::function<void(std::size_t)> observe_;
  Later later_;
  mutable std::mutex mutex_;
  std::deque<Job> jobs_;
  bool busy_ = false; // a thread computes, or a task is to continue
};

} // namespace troupe::experiments::serving
