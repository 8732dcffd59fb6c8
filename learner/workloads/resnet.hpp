#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

namespace troupe::learner {

struct ResNetOptions {
  int depth = 50; // 18, 34, 50, 101, 152; for pictures of 32x32 also 20, 32, 44, 56, 110
  std::int64_t classes = 1000;
  bool zero_last_gamma = false; // each block starts as the identity
  std::int64_t channels = 3;    // of the pictures
  bool small_stem = false; // for small pictures: the stem is a 3x3 convolution without stride or
                           // pooling, instead of 7x7/2 and max pooling; depths 20 to 110 always
                           // have it
  std::optional<at::Generator> generator = {}; // for the initial weights; none: LibTorch's default
};

/// Whether ResNet supports this depth; resnet_depths() lists the depths for messages: "18, 34, …".
bool is_resnet_depth(int depth);
const char* resnet_depths();

/// Residual networks for pictures, v1.5: the stride of a bottleneck is in its 3x3 convolution.
/// Names and shapes of parameters and buffers are torchvision's (conv1.weight,
/// layer1.0.bn2.running_mean, layer3.0.downsample.0.weight, fc.bias), so that its weights can be
/// loaded.
///
/// Depths 20 to 110 are those of He et al. (2016, section 4.2) for CIFAR: three layers of 16, 32
/// and 64 channels, with shortcuts without parameters (every second pixel, and zeros for the
/// additional channels). The names are the same, without "downsample" and layer4. One thread at a
/// time.
class ResNetImpl : public torch::nn::Module {
public:
  /// Uses He initialisation. Throws std::invalid_argument for an unsupported depth.
  explicit ResNetImpl(const ResNetOptions& options = {});

  /// [batch, channels, height, width] -> logits [batch, classes]. Computes in the layout of the
  /// input.
  at::Tensor forward(at::Tensor pictures) { return head(features(std::move(pictures))); }

  /// features() returns the input of the last layer, [batch, feature_size()]; head() returns the
  /// logits for it.
  at::Tensor features(at::Tensor pictures);
  at::Tensor head(const at::Tensor& features) { return fc_->forward(features); }
  std::int64_t feature_size() const { return channels_; }

private:
  torch::nn::Sequential make_layer(int blocks, std::int64_t width, std::int64_t stride,
                                   const ResNetOptions& options);
  void initialise(const ResNetOptions& options);

  std::int64_t channels_ = 0; // output channels of the layers made so far
  bool pools_ = true;         // after the first convolution
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  std::vector<torch::nn::Sequential> layers_; // 4, or 3
  torch::nn::Linear fc_{nullptr};
};
TORCH_MODULE(ResNet);

} // namespace troupe::learner
