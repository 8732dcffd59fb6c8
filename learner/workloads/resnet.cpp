#include "learner/workloads/resnet.hpp"

#include <array>
#include <map>
#include <stdexcept>

#include <torch/nn/functional/pooling.h>
#include <torch/nn/init.h>

namespace troupe::learner {
namespace {

constexpr std::int64_t kExpansion = 4; // of a bottleneck's output over its width

struct Depth {
  bool bottleneck;
  std::array<int, 4> blocks;
};

const Depth& depth_of(int depth) {
  static const std::map<int, Depth> table{{18, {false, {2, 2, 2, 2}}},
                                          {34, {false, {3, 4, 6, 3}}},
                                          {50, {true, {3, 4, 6, 3}}},
                                          {101, {true, {3, 4, 23, 3}}},
                                          {152, {true, {3, 8, 36, 3}}}};
  const auto found = table.find(depth);
  if (found == table.end())
    throw std::invalid_argument("resnet: depth " + std::to_string(depth)
                                + " is not one of 18, 34, 50, 101, 152");
  return found->second;
}

torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel,
                              std::int64_t stride) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

/// Two 3x3 convolutions, or a 1x1, a 3x3 and a 1x1, and the way around them.
class BlockImpl : public torch::nn::Module {
public:
  BlockImpl(std::int64_t in, std::int64_t width, std::int64_t stride, bool bottleneck) {
    const auto out = bottleneck ? width * kExpansion : width;
    if (bottleneck) {
      add(in, width, 1, 1);
      add(width, width, 3, stride);
      add(width, out, 1, 1);
    } else {
      add(in, width, 3, stride);
      add(width, out, 3, 1);
    }
    if (stride != 1 || in != out)
      around_ = register_module("downsample", torch::nn::Sequential(convolution(in, out, 1, stride),
                                                                    torch::nn::BatchNorm2d(out)));
  }

  at::Tensor forward(const at::Tensor& input) {
    auto x = input;
    for (std::size_t i = 0; i < convolutions_.size(); ++i) {
      if (i > 0)
        x.relu_();
      x = norms_[i]->forward(convolutions_[i]->forward(x));
    }
    x += around_.is_empty() ? input : around_->forward(input);
    return x.relu_();
  }

  torch::nn::BatchNorm2d& last_norm() { return norms_.back(); }

private:
  void add(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
    const auto number = std::to_string(convolutions_.size() + 1);
    convolutions_.push_back(register_module("conv" + number, convolution(in, out, kernel, stride)));
    norms_.push_back(register_module("bn" + number, torch::nn::BatchNorm2d(out)));
  }

  std::vector<torch::nn::Conv2d> convolutions_;
  std::vector<torch::nn::BatchNorm2d> norms_;
  torch::nn::Sequential around_{nullptr};
};
TORCH_MODULE(Block);

} // namespace

ResNetImpl::ResNetImpl(const ResNetOptions& options) {
  const auto& [bottleneck, blocks] = depth_of(options.depth);
  conv1_ = register_module("conv1", convolution(3, channels_, 7, 2));
  bn1_ = register_module("bn1", torch::nn::BatchNorm2d(channels_));
  std::int64_t width = channels_;
  for (std::size_t i = 0; i < blocks.size(); ++i, width *= 2)
    layers_.push_back(register_module("layer" + std::to_string(i + 1),
                                      make_layer(blocks[i], width, i == 0 ? 1 : 2, bottleneck)));
  fc_ = register_module("fc", torch::nn::Linear(channels_, options.classes));
  initialise(options.zero_last_gamma);
}

torch::nn::Sequential ResNetImpl::make_layer(int blocks, std::int64_t width, std::int64_t stride,
                                             bool bottleneck) {
  torch::nn::Sequential layer;
  for (int i = 0; i < blocks; ++i) {
    layer->push_back(Block(channels_, width, i == 0 ? stride : 1, bottleneck));
    channels_ = bottleneck ? width * kExpansion : width;
  }
  return layer;
}

void ResNetImpl::initialise(bool zero_last_gamma) {
  const at::NoGradGuard guard;
  for (const auto& module : modules(false)) {
    if (auto* conv = module->as<torch::nn::Conv2dImpl>())
      torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
    else if (auto* block = module->as<BlockImpl>(); block && zero_last_gamma)
      torch::nn::init::zeros_(block->last_norm()->weight);
  }
}

at::Tensor ResNetImpl::forward(at::Tensor pictures) {
  namespace functional = torch::nn::functional;
  auto x = bn1_->forward(conv1_->forward(pictures)).relu_();
  x = functional::max_pool2d(x, functional::MaxPool2dFuncOptions(3).stride(2).padding(1));
  for (auto& layer : layers_)
    x = layer->forward(x);
  return fc_->forward(x.mean({2, 3}));
}

void ResNetImpl::to_channels_last() {
  const at::NoGradGuard guard;
  for (auto& parameter : parameters())
    if (parameter.dim() == 4)
      parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
}

} // namespace troupe::learner
