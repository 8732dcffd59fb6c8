#include "learner/agents/predictive/reward_scale.hpp"

#include <torch/types.h>

#include "learner/agents/predictive/sequence_returns.hpp"

namespace troupe::learner {
namespace {

constexpr double kLeastScale = 1e-3; // prevents overflow at a sparse task's first reward
constexpr double kKept = 0.98;       // weight of previous rewards in each new period; small
                                     // changes, because critics must adapt to each

} // namespace

void RewardScale::build() {
  numbers_ = measured_ ? at::zeros({4}, at::kDouble) : at::ones({4}, at::kDouble);
}

void RewardScale::see(ReplicaContext& context, const TensorMap& batch, std::int64_t steps) {
  if (!measured_)
    return;
  const at::Tensor within = steps_within(batch, steps, at::kDouble);
  at::Tensor sums = at::stack({(batch.at("reward").abs() * within).sum(), within.sum()});
  if (context.communicator() != nullptr && context.has_collectives()) {
    sums = sums.to(context.device());
    context.all_reduce_(sums, ReduceOp::sum);
  }
  numbers_.narrow(0, 2, 2).add_(sums.cpu());
  if (current() == 0) { // first batch
    refresh();
    numbers_[1].copy_(numbers_[0]);
  }
}

void RewardScale::refresh() {
  numbers_[0].copy_((numbers_[2] / numbers_[3].clamp_min(1)).clamp_min(kLeastScale));
}

void RewardScale::end_period() {
  if (!measured_)
    return;
  numbers_[1].copy_(numbers_[0]);
  refresh();
  numbers_.narrow(0, 2, 2).mul_(kKept);
}

} // namespace troupe::learner
