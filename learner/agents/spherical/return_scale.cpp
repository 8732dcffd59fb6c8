#include "learner/agents/spherical/return_scale.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/types.h>

namespace troupe::learner {
namespace {

constexpr double kNewestShare = 1e-3;         // of a batch in the moments
constexpr double kLeastReturnVariance = 1e-8; // added, as in the original

} // namespace

void ReturnScale::build() {
  moments_ = at::zeros({3}, at::kDouble);
  largest_ = at::zeros({1}, at::kDouble);
}

void ReturnScale::observe(ReplicaContext& context, const at::Tensor& returns) {
  const at::Tensor values = returns.to(at::kCPU, at::kDouble);
  at::Tensor sums = at::stack({at::ones_like(values).sum(), values.sum(), values.square().sum()});
  at::Tensor largest = values.abs().max().view({1});
  if (context.communicator() != nullptr && context.has_collectives()) {
    for (const auto& [numbers, op] : {std::pair{&sums, ReduceOp::sum}, {&largest, ReduceOp::max}}) {
      at::Tensor on_device = numbers->to(context.device());
      context.all_reduce_(on_device, op);
      *numbers = on_device.cpu();
    }
  }
  moments_.mul_(1 - kNewestShare).add_(sums / sums[0], kNewestShare);
  largest_.copy_(at::maximum(largest_, largest));
}

double ReturnScale::value() const {
  const double* sums = moments_.const_data_ptr<double>();
  double variance = 0; // before the first batch
  if (sums[0] > 0)
    variance = std::max(0.0, sums[2] / sums[0] - std::pow(sums[1] / sums[0], 2));
  return std::max(std::sqrt(variance + kLeastReturnVariance), largest_.item<double>() / limit_);
}

void ReturnScale::show(TensorMap& out) const {
  out["return_moments"] = moments_;
  out["largest_return"] = largest_;
}

} // namespace troupe::learner
