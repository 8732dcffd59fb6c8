#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

namespace troupe::learner {

struct ResNetOptions {
  int depth = 50; // 18, 34, 50, 101, 152
  std::int64_t classes = 1000;
  bool zero_last_gamma = false; // each block begins as the identity
};

/// Residual networks for pictures, v1.5: the stride of a bottleneck lies in its 3x3 convolution.
/// Names and shapes of parameters and buffers are torchvision's (conv1.weight,
/// layer1.0.bn2.running_mean, layer3.0.downsample.0.weight, fc.bias), so its weights load. One
/// thread at a time.
class ResNetImpl : public torch::nn::Module {
public:
  /// He initialisation from LibTorch's default generator. Throws std::invalid_argument for a depth
  /// that is not in the table.
  explicit ResNetImpl(const ResNetOptions& options = {});

  /// [batch, 3, height, width] -> logits [batch, classes]. In the layout of the input.
  at::Tensor forward(at::Tensor pictures);

  /// Lays the convolutions' weights out as [out, height, width, in] in memory: a third faster on
  /// CPUs and tensor cores, for pictures that lie likewise. The values and shapes stay.
  void to_channels_last();

private:
  torch::nn::Sequential make_layer(int blocks, std::int64_t width, std::int64_t stride,
                                   bool bottleneck);
  void initialise(bool zero_last_gamma);

  std::int64_t channels_ = 64; // that come out of what has been made
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  std::vector<torch::nn::Sequential> layers_; // 4
  torch::nn::Linear fc_{nullptr};
};
TORCH_MODULE(ResNet);

} // namespace troupe::learner
