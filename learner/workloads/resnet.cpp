#include "learner/workloads/resnet.hpp"

#include <cmath>
#include <map>
#include <stdexcept>

#include <ATen/ops/constant_pad_nd.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/init.h>

#include "learner/nn/batch_norm_relu.hpp"
#include "learner/nn/kernels/pointwise_convolution.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kExpansion = 4; // ratio of a bottleneck's output channels to its width

struct Depth {
  bool bottleneck;
  std::vector<int> blocks; // per layer; three layers: the CIFAR family
  bool small() const { return blocks.size() == 3; }
};

const std::map<int, Depth>& depths() {
  static const std::map<int, Depth> table{
      {18, {false, {2, 2, 2, 2}}},  {34, {false, {3, 4, 6, 3}}},  {50, {true, {3, 4, 6, 3}}},
      {101, {true, {3, 4, 23, 3}}}, {152, {true, {3, 8, 36, 3}}}, {20, {false, {3, 3, 3}}},
      {32, {false, {5, 5, 5}}},     {44, {false, {7, 7, 7}}},     {56, {false, {9, 9, 9}}},
      {110, {false, {18, 18, 18}}}};
  return table;
}

const Depth& depth_of(int depth) {
  const auto found = depths().find(depth);
  if (found == depths().end())
    throw std::invalid_argument("resnet: depth " + std::to_string(depth) + " is not one of "
                                + resnet_depths());
  return found->second;
}

torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel,
                              std::int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

/// Two 3x3 convolutions, or a 1x1, a 3x3 and a 1x1, with the shortcut around them.
class BlockImpl : public torch::nn::Module {
public:
  BlockImpl(std::int64_t in, std::int64_t width, std::int64_t stride, const Depth& depth) {
    const auto out = depth.bottleneck ? width * kExpansion : width;
    if (depth.bottleneck) {
      add(in, width, 1, 1);
      add(width, width, 3, stride);
      add(width, out, 1, 1);
    } else {
      add(in, width, 3, stride);
      add(width, out, 3, 1);
    }
    if (stride == 1 && in == out)
      return;
    if (depth.small()) {
      stride_ = stride;
      padding_ = (out - in) / 2;
    } else {
      around_ = register_module("downsample", torch::nn::Sequential(convolution(in, out, 1, stride),
                                                                    torch::nn::BatchNorm2d(out)));
    }
  }

  at::Tensor forward(const at::Tensor& input) {
    auto x = input;
    for (std::size_t i = 0; i + 1 < convolutions_.size(); ++i)
      x = batch_norm_relu(norms_[i], pointwise_convolution(convolutions_[i], x));
    x = pointwise_convolution(convolutions_.back(), x);
    return batch_norm_relu(norms_.back(), x, around(input));
  }

  torch::nn::BatchNorm2d& last_norm() { return norms_.back(); }

private:
  at::Tensor around(const at::Tensor& input) {
    if (!around_.is_empty())
      return around_->forward(input);
    if (stride_ == 1 && padding_ == 0)
      return input;
    const auto fewer = input.slice(2, 0, std::nullopt, stride_).slice(3, 0, std::nullopt, stride_);
    return at::constant_pad_nd(fewer, {0, 0, 0, 0, padding_, padding_});
  }

  void add(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
    const auto number = std::to_string(convolutions_.size() + 1);
    convolutions_.push_back(register_module("conv" + number, convolution(in, out, kernel, stride)));
    norms_.push_back(register_module("bn" + number, torch::nn::BatchNorm2d(out)));
  }

  std::vector<torch::nn::Conv2d> convolutions_;
  std::vector<torch::nn::BatchNorm2d> norms_;
  torch::nn::Sequential around_{nullptr};
  std::int64_t stride_ = 1;  // of a shortcut without parameters
  std::int64_t padding_ = 0; // zero channels on either side of it
};
TORCH_MODULE(Block);

} // namespace

bool is_resnet_depth(int depth) {
  return depths().contains(depth);
}

const char* resnet_depths() {
  return "18, 34, 50, 101, 152, 20, 32, 44, 56, 110";
}

ResNetImpl::ResNetImpl(const ResNetOptions& options) {
  const auto& depth = depth_of(options.depth);
  const bool small_stem = options.small_stem || depth.small();
  channels_ = depth.small() ? 16 : 64;
  pools_ = !small_stem;
  conv1_ = register_module(
      "conv1", convolution(options.channels, channels_, small_stem ? 3 : 7, small_stem ? 1 : 2));
  bn1_ = register_module("bn1", torch::nn::BatchNorm2d(channels_));
  std::int64_t width = channels_;
  for (std::size_t i = 0; i < depth.blocks.size(); ++i, width *= 2)
    layers_.push_back(register_module("layer" + std::to_string(i + 1),
                                      make_layer(depth.blocks[i], width, i == 0 ? 1 : 2, options)));
  fc_ = register_module("fc", torch::nn::Linear(channels_, options.classes));
  initialise(options);
}

torch::nn::Sequential ResNetImpl::make_layer(int blocks, std::int64_t width, std::int64_t stride,
                                             const ResNetOptions& options) {
  const auto& depth = depth_of(options.depth);
  torch::nn::Sequential layer;
  for (int i = 0; i < blocks; ++i) {
    layer->push_back(Block(channels_, width, i == 0 ? stride : 1, depth));
    channels_ = depth.bottleneck ? width * kExpansion : width;
  }
  return layer;
}

void ResNetImpl::initialise(const ResNetOptions& options) {
  const at::NoGradGuard guard;
  for (const auto& module : modules(false)) {
    if (auto* conv = module->as<torch::nn::Conv2dImpl>()) {
      const auto fan_out = conv->weight.numel() / conv->weight.size(1);
      conv->weight.normal_(0, std::sqrt(2.0 / static_cast<double>(fan_out)), options.generator);
    } else if (auto* block = module->as<BlockImpl>(); block && options.zero_last_gamma) {
      torch::nn::init::zeros_(block->last_norm()->weight);
    }
  }
  const double bound = 1 / std::sqrt(static_cast<double>(channels_));
  fc_->weight.uniform_(-bound, bound, options.generator);
  fc_->bias.uniform_(-bound, bound, options.generator);
}

at::Tensor ResNetImpl::features(at::Tensor pictures) {
  namespace functional = torch::nn::functional;
  auto x = batch_norm_relu(bn1_, conv1_->forward(pictures));
  if (pools_)
    x = functional::max_pool2d(x, functional::MaxPool2dFuncOptions(3).stride(2).padding(1));
  for (auto& layer : layers_)
    x = layer->forward(x);
  return x.mean({2, 3});
}

} // namespace troupe::learner
