#pragma once
// Internals of GradientBuckets.

#include <algorithm>
#include <mutex>
#include <vector>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include "learner/gradients/gradient_buckets.hpp"

namespace troupe::learner {

/// Indices into a bucket's tail, which follows its gradients. For each member, the tail says
/// whether it has a gradient and whether that is not finite; for each replica, whether its
/// gradients are not finite and whether it takes a step. The last three entries concern the whole
/// step.
struct GradientTail {
  std::size_t members = 0;
  std::size_t replicas = 0;

  std::size_t present(std::size_t member) const { return member; }
  std::size_t bad(std::size_t member) const { return members + member; }
  std::size_t bad_on(std::size_t replica) const { return 2 * members + replica; }
  std::size_t stepping(std::size_t replica) const { return 2 * members + replicas + replica; }
  std::size_t late() const { return 2 * (members + replicas); }
  std::size_t hooked() const { return late() + 1; }
  std::size_t wasted() const { return late() + 2; }
  std::size_t size() const { return late() + 3; }
};

constexpr signed char kNotTaken = -1;

struct GradientBuckets::Bucket {
  std::vector<std::size_t> members;
  BucketMemory memory;
  GradientTail layout;
  std::vector<signed char> finite; // [member] whether the copied gradient is finite, or kNotTaken
  std::unique_ptr<BucketReduction> reduction;
  std::size_t pending = 0; // members whose gradients are incomplete
  bool launched = false;
};

/// State shared with the hooks on autograd's nodes and with the thread that ends a reduction. Both
/// may outlive the owner for a moment.
struct GradientBuckets::Hooks {
  struct Hook : torch::autograd::FunctionPostHook {
    Hook(std::weak_ptr<Hooks> hooks, std::size_t index)
        : owner(std::move(hooks)), parameter(index) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                              const torch::autograd::variable_list&) override {
      if (const auto hooks = owner.lock())
        hooks->buckets->on_gradient(parameter);
      return outputs;
    }
    std::weak_ptr<Hooks> owner;
    std::size_t parameter;
  };

  Hooks(GradientBuckets* owner, collectives::Timeline* times) : buckets(owner), timeline(times) {}
  void arrived(int bucket, collectives::Timeline::Clock::time_point begin) {
    const std::lock_guard lock(mutex);
    const auto end = collectives::Timeline::Clock::now();
    if (timeline) // spans do not overlap: each begins after the previous bucket's end
      timeline->add("reduce", bucket, std::max(begin, last_arrival), end);
    last_arrival = end;
  }

  GradientBuckets* buckets;
  std::mutex mutex;
  collectives::Timeline* timeline;
  collectives::Timeline::Clock::time_point last_arrival;
  std::vector<std::pair<std::shared_ptr<torch::autograd::Node>, std::uintptr_t>> nodes;
};

} // namespace troupe::learner
