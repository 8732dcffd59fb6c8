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
  const at::Tensor horizon = 1 - discount.to(at::kDouble).clamp(0, kMostDiscount);
  at::Tensor bound =
      ((reward.to(at::kDouble).abs() / horizon).max() / limit_).to(at::kCPU).view({1});
  if (context.communicator() != nullptr && context.has_collectives())
    context.all_reduce_(bound, ReduceOp::max);
  scale_.copy_(at::maximum(scale_, bound));
}

} // namespace troupe::learner
