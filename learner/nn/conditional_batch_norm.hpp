#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/pimpl.h>

namespace troupe::learner {

/// Batch normalisation with a gain and a bias for each class (de Vries et al. 2017): "gain" and
/// "bias", [classes, channels], and the running averages of "norm". It normalises over all replicas
/// once convert_batch_norm() has converted the network that contains it.
class ConditionalBatchNormImpl : public torch::nn::Module {
public:
  ConditionalBatchNormImpl(std::int64_t channels, std::int64_t classes);

  /// x is [batch, channels, height, width], labels are int64 [batch]. The result has the type of x.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& labels);

private:
  torch::nn::BatchNorm2d norm_{nullptr};
  at::Tensor gain_, bias_;
};
TORCH_MODULE(ConditionalBatchNorm);

} // namespace troupe::learner
