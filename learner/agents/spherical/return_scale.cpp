#include "learner/agents/spherical/return_scale.hpp"

#include <torch/types.h>

namespace troupe::learner {
namespace {

constexpr double kLeastReturnScale = 1e-3; // for tasks that have not given a reward yet
constexpr double kMostDiscount = 0.999;    // used if nothing is discounted: a horizon of 1000

} // namespace

void ReturnScale::build() {
  scale_ = at::full({1}, kLeastReturnScale, at::kDouble);
}

void ReturnScale::observe(ReplicaContext& context, const at::Tensor& reward,
                          const at::Tensor& discount) {
  const at::Tensor largest = reward.abs().max().to(at::kCPU, at::kDouble);
  const at::Tensor kept = discount.max().to(at::kCPU, at::kDouble).clamp(0, kMostDiscount);
  at::Tensor bound = (largest / ((1 - kept) * limit_)).view({1});
  if (context.communicator() != nullptr && context.has_collectives())
    context.all_reduce_(bound, ReduceOp::max);
  scale_.copy_(at::maximum(scale_, bound));
}

} // namespace troupe::learner
