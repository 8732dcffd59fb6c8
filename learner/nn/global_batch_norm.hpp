#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include "collectives/communicator.hpp"

namespace troupe::learner {

class ReplicaContext;

/// Batch normalisation over the rows of all replicas in sync: it uses the mean and variance of the
/// global batch, forward and backward, so that N replicas on 1/N of the batch equal one replica on
/// the whole batch. Replicas whose parameters differ (ReplicaContext::parameters_are_equal()) each
/// normalise over their own rows. The input is [rows, channels, …]; replicas may have different
/// numbers of rows. In training, a single value per channel over all replicas has no variance and
/// is refused with std::invalid_argument on all of them. Parameters, buffers, options and running
/// averages (unbiased variance) are those of torch::nn::BatchNorm1d, 2d and 3d. In training, a
/// forward pass is one collective of the sync group, and a backward pass is another. Source: the
/// formulas of Ioffe and Szegedy (2015); statistics are combined as in Chan et al. (1979).
class GlobalBatchNormImpl : public torch::nn::BatchNormImplBase<2, GlobalBatchNormImpl> {
public:
  /// The context's communicator must outlive this object. A single replica normalises over its own
  /// rows.
  GlobalBatchNormImpl(ReplicaContext& context, const torch::nn::BatchNormOptions& wanted);
  at::Tensor forward(const at::Tensor& input);
  void pretty_print(std::ostream& stream) const override;

protected:
  void _check_input_dim(const at::Tensor& input) override; // at least [rows, channels]
};
TORCH_MODULE(GlobalBatchNorm);

/// Converts every BatchNorm1d, 2d and 3d within `module` to a global one, in place: its forward()
/// then normalises over all replicas of the context, but LibTorch still refuses a single value per
/// channel on one replica; it accepts an input without rows. Returns the number of converted
/// modules. Call this last: moving the module to another device or type afterwards undoes it (see
/// is_global_batch_norm()). Throws std::invalid_argument naming a batch norm that has neither
/// weights nor running averages.
int convert_batch_norm(torch::nn::Module& module, ReplicaContext& context);

/// Gives all replicas in sync the module's buffers of replica 0, unless their parameters differ.
/// All of them must call it. Without global batch norm, each replica has its own running averages.
void agree_on_buffers(torch::nn::Module& module, ReplicaContext& context);

/// Whether the batch norm with this weight or running mean is global.
bool is_global_batch_norm(const at::Tensor& weight_or_running_mean);

} // namespace troupe::learner
