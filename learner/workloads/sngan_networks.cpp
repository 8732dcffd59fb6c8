#include "learner/workloads/sngan_networks.hpp"

#include <cmath>
#include <string>

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/upsample_nearest2d.h>

#include "learner/nn/conditional_batch_norm.hpp"

namespace troupe::learner {
namespace {

constexpr std::int64_t kSmallest = 4; // height and width at which the generator begins

torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, kernel).padding(kernel / 2));
}

/// Whether all blocks have the same number of channels; otherwise each block at half the size has
/// twice as many.
bool has_equal_widths(const SnganShape& shape) {
  return shape.size == 32 && !shape.tapered;
}

at::Tensor doubled(const at::Tensor& x) {
  return at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)});
}

at::Tensor halved(const at::Tensor& x) {
  return at::avg_pool2d(x, {2, 2});
}

/// Sets Glorot's uniform weights. The weights of a block's inner convolutions are larger by
/// sqrt(2), because of the ReLU before them. Biases are 0.
void initialise(const torch::nn::Module& module, const at::Generator& generator) {
  const at::NoGradGuard guard;
  for (auto& item : module.named_parameters()) {
    auto& tensor = item.value();
    const auto& name = item.key();
    if (tensor.dim() < 2 || name.find("norm") != std::string::npos) {
      if (name.ends_with("bias"))
        tensor.zero_();
      continue;
    }
    const auto inner = tensor.numel() / (tensor.size(0) * tensor.size(1)); // of the kernel
    const auto fans = static_cast<double>((tensor.size(0) + tensor.size(1)) * inner);
    const bool in_block = name.find(".conv") != std::string::npos;
    const double bound = std::sqrt((in_block ? 2 : 1) * 6 / fans);
    tensor.uniform_(-bound, bound, generator);
  }
}

} // namespace

/// Norm, ReLU, upsampling by 2, 3x3; norm, ReLU, 3x3. The shortcut: upsampling by 2, 1x1.
class GeneratorBlockImpl : public torch::nn::Module {
public:
  GeneratorBlockImpl(std::int64_t in, std::int64_t out, std::int64_t classes)
      : norm1_(register_module("norm1", ConditionalBatchNorm(in, classes))),
        norm2_(register_module("norm2", ConditionalBatchNorm(out, classes))),
        conv1_(register_module("conv1", convolution(in, out, 3))),
        conv2_(register_module("conv2", convolution(out, out, 3))),
        around_(register_module("around", convolution(in, out, 1))) {}

  at::Tensor forward(const at::Tensor& x, const at::Tensor& labels) {
    auto y = conv1_->forward(doubled(norm1_->forward(x, labels).relu_()));
    y = conv2_->forward(norm2_->forward(y, labels).relu_());
    // A 1x1 convolution and copying pixels commute; on the small picture it costs a quarter.
    return y + doubled(around_->forward(x));
  }

private:
  ConditionalBatchNorm norm1_{nullptr}, norm2_{nullptr};
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr}, around_{nullptr};
};

/// (ReLU,) 3x3, ReLU, 3x3, downsampling by 2. The shortcut: 1x1, downsampling by 2.
class CriticBlockImpl : public torch::nn::Module {
public:
  CriticBlockImpl(std::int64_t in, std::int64_t out, bool halves, bool first)
      : halves_(halves),
        first_(first),
        conv1_(register_module("conv1", convolution(in, out, 3))),
        conv2_(register_module("conv2", convolution(out, out, 3))) {
    if (halves || in != out)
      around_ = register_module("around", convolution(in, out, 1));
  }

  at::Tensor forward(const at::Tensor& x) {
    auto y = conv2_->forward(conv1_->forward(first_ ? x : x.relu()).relu_());
    if (halves_)
      y = halved(y);
    if (around_.is_empty())
      return y + x;
    // A 1x1 convolution and averaging pixels commute; on the small picture it costs a quarter.
    return y + around_->forward(halves_ ? halved(x) : x);
  }

private:
  bool halves_;
  bool first_; // its input is pictures, which no ReLU may clip
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr}, around_{nullptr};
};

SnganGeneratorImpl::SnganGeneratorImpl(const SnganShape& shape, at::Generator generator) {
  const bool equal = has_equal_widths(shape);
  const auto base = shape.generator_channels > 0 ? shape.generator_channels : equal ? 256 : 64;
  std::vector<std::int64_t> widths(4, base);
  if (shape.size == 32 && !equal)
    widths = {8 * base, 4 * base, 2 * base, base};
  else if (shape.size == 64)
    widths = {16 * base, 8 * base, 4 * base, 2 * base, base};
  else if (shape.size == 128)
    widths = {16 * base, 16 * base, 8 * base, 4 * base, 2 * base, base};
  first_ =
      register_module("first", torch::nn::Linear(shape.latent, widths[0] * kSmallest * kSmallest));
  for (std::size_t i = 1; i < widths.size(); ++i)
    blocks_.push_back(register_module(
        "block" + std::to_string(i),
        std::make_shared<GeneratorBlockImpl>(widths[i - 1], widths[i], shape.classes)));
  norm_ = register_module("norm", torch::nn::BatchNorm2d(base));
  last_ = register_module("last", convolution(base, 3, 3));
  initialise(*this, generator);
}

at::Tensor SnganGeneratorImpl::forward(const at::Tensor& noise, const at::Tensor& labels) {
  auto x = first_->forward(noise).view({noise.size(0), -1, kSmallest, kSmallest});
  if (last_->weight.is_contiguous(at::MemoryFormat::ChannelsLast))
    x = x.contiguous(at::MemoryFormat::ChannelsLast);
  for (const auto& block : blocks_)
    x = block->forward(x, labels);
  return last_->forward(norm_->forward(x).relu_()).tanh();
}

SnganCriticImpl::SnganCriticImpl(const SnganShape& shape, at::Generator generator) {
  const bool equal = has_equal_widths(shape);
  const auto base = shape.critic_channels > 0 ? shape.critic_channels : equal ? 128 : 64;
  struct Width {
    std::int64_t channels;
    bool halves;
  };
  std::vector<Width> widths{{base, true}, {base, true}, {base, false}, {base, false}};
  if (shape.size == 32 && !equal)
    widths = {{base, true}, {2 * base, true}, {4 * base, false}, {4 * base, false}};
  else if (shape.size > 32)
    widths = {
        {base, true}, {2 * base, true}, {4 * base, true}, {8 * base, true}, {16 * base, true}};
  if (shape.size == 128)
    widths.push_back({16 * base, false});
  std::int64_t in = 3;
  for (const auto& [channels, halves] : widths) {
    blocks_.push_back(
        register_module("block" + std::to_string(blocks_.size() + 1),
                        std::make_shared<CriticBlockImpl>(in, channels, halves, blocks_.empty())));
    in = channels;
  }
  score_ = register_module("score", torch::nn::Linear(in, 1));
  if (shape.classes > 1)
    classes_ = register_module("classes", torch::nn::Embedding(shape.classes, in));
  initialise(*this, generator);
}

at::Tensor SnganCriticImpl::forward(const at::Tensor& pictures, const at::Tensor& labels) {
  auto x = pictures;
  for (const auto& block : blocks_)
    x = block->forward(x);
  const auto seen = x.relu().sum({2, 3});
  auto scores = score_->forward(seen).squeeze(1);
  if (!classes_.is_empty())
    scores = scores + (classes_->forward(labels) * seen).sum(1);
  return scores;
}

} // namespace troupe::learner
