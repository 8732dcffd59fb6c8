#include "learner/agents/predictive/sequence_returns.hpp"

#include <torch/types.h>

namespace troupe::learner {

at::Tensor steps_within(const TensorMap& batch, std::int64_t steps,
                        const at::TensorOptions& options) {
  return (1 - batch.at("first").narrow(1, 1, steps).to(options)).cumprod(1);
}

SequenceReturns sequence_returns(const TensorMap& batch, int n_step, double discount,
                                 const at::TensorOptions& options) {
  const at::Tensor within = steps_within(batch, n_step, options);
  const at::Tensor reward = batch.at("reward").narrow(1, 0, n_step).to(options);
  const at::Tensor kept = batch.at("discount").narrow(1, 0, n_step).to(options) * discount;
  SequenceReturns made{at::zeros({reward.size(0)}, options), at::ones({reward.size(0)}, options),
                       within.sum(1).round().to(at::kLong)};
  for (int k = 0; k < n_step; ++k) {
    const at::Tensor here = within.select(1, k);
    made.reward += here * made.discount * reward.select(1, k);
    made.discount *= here * kept.select(1, k) + (1 - here);
  }
  return made;
}

} // namespace troupe::learner
