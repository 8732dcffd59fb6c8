#include "learner/nn/running_moments.hpp"

#include <torch/types.h>

#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {
namespace {

/// Added to the variance: a constant column gives 0, and a deviation of less than 1e-3 counts as
/// 1e-3, so that a column which was constant at first does not become huge when it moves.
constexpr double kLeastVariance = 1e-6;

} // namespace

void RunningMoments::build(const at::TensorOptions& options) {
  const at::TensorOptions wide = options.dtype(at::kDouble);
  count_ = at::zeros({1}, wide);
  mean_ = at::zeros({columns_}, wide);
  variance_ = at::ones({columns_}, wide);
}

/// Sums distances from the current mean, and combines them as in Chan et al. (1979).
void RunningMoments::observe(ReplicaContext& context, const at::Tensor& rows) {
  const at::Tensor distance = rows.to(at::kDouble) - mean_;
  at::Tensor sums = at::cat({distance.sum(0), distance.square().sum(0),
                             at::full({1}, static_cast<double>(rows.size(0)), mean_.options())});
  if (context.communicator() != nullptr && context.has_collectives())
    context.all_reduce_(sums, ReduceOp::sum);
  const at::Tensor more = sums.narrow(0, 2 * columns_, 1);
  const at::Tensor total = count_ + more;
  const at::Tensor shift = sums.narrow(0, 0, columns_) / total;
  variance_.mul_(count_).add_(sums.narrow(0, columns_, columns_)).div_(total).sub_(shift.square());
  mean_.add_(shift);
  count_.copy_(total);
}

at::Tensor RunningMoments::inverse_deviation() const {
  return (variance_ + kLeastVariance).rsqrt();
}

at::Tensor RunningMoments::normalised(const at::Tensor& rows) const {
  return (rows - mean_.to(rows.scalar_type())) * inverse_deviation().to(rows.scalar_type());
}

void RunningMoments::show(const std::string& prefix, TensorMap& out) const {
  out[prefix + ".mean"] = mean_;
  out[prefix + ".variance"] = variance_;
  out[prefix + ".count"] = count_;
}

at::Tensor RunningMoments::published() const {
  return at::cat({mean_, inverse_deviation()}).to(at::kCPU, at::kFloat);
}

} // namespace troupe::learner
