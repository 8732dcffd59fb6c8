#include "learner/nn/conditional_batch_norm.hpp"

#include <ATen/ops/addcmul.h>

namespace troupe::learner {

ConditionalBatchNormImpl::ConditionalBatchNormImpl(std::int64_t channels, std::int64_t classes)
    : norm_(register_module(
        "norm", torch::nn::BatchNorm2d(torch::nn::BatchNormOptions(channels).affine(false)))),
      gain_(register_parameter("gain", torch::ones({classes, channels}))),
      bias_(register_parameter("bias", torch::zeros({classes, channels}))) {}

at::Tensor ConditionalBatchNormImpl::forward(const at::Tensor& x, const at::Tensor& labels) {
  const auto normal = norm_->forward(x);
  const auto of_rows = [&](const at::Tensor& table) {
    return table.index_select(0, labels).to(normal.scalar_type()).unsqueeze(2).unsqueeze(3);
  };
  return at::addcmul(of_rows(bias_), normal, of_rows(gain_));
}

} // namespace troupe::learner
