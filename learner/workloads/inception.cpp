#include "learner/workloads/inception.hpp"

#include <array>
#include <functional>
#include <string>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include "learner/nn/batch_norm_relu.hpp"

namespace troupe::learner {
namespace {

namespace functional = torch::nn::functional;

/// A convolution without bias, followed by batch norm and ReLU.
struct Convolution {
  const char* name;
  std::int64_t in;
  std::int64_t out;
  std::int64_t height; // of the kernel
  std::int64_t width;
  std::int64_t stride = 1;
  bool padded = true; // by half a kernel
};

class ConvolutionImpl : public torch::nn::Module {
public:
  explicit ConvolutionImpl(const Convolution& shape) {
    const std::array<std::int64_t, 2> kernel{shape.height, shape.width};
    const std::array<std::int64_t, 2> padding{shape.padded ? shape.height / 2 : 0,
                                              shape.padded ? shape.width / 2 : 0};
    conv_ = register_module(
        "conv",
        torch::nn::Conv2d(torch::nn::Conv2dOptions(shape.in, shape.out, {kernel[0], kernel[1]})
                              .stride(shape.stride)
                              .padding({padding[0], padding[1]})
                              .bias(false)));
    bn_ = register_module(
        "bn", torch::nn::BatchNorm2d(torch::nn::BatchNormOptions(shape.out).eps(0.001)));
  }
  at::Tensor forward(const at::Tensor& x) { return batch_norm_relu(bn_, conv_->forward(x)); }

private:
  torch::nn::Conv2d conv_{nullptr};
  torch::nn::BatchNorm2d bn_{nullptr};
};

enum class Pool : std::uint8_t { none, average, maximum };

at::Tensor pooled(const at::Tensor& x, Pool pool) {
  switch (pool) {
  case Pool::average:
    return functional::avg_pool2d(x, functional::AvgPool2dFuncOptions(3).stride(1).padding(1));
  case Pool::maximum:
    return functional::max_pool2d(x, functional::MaxPool2dFuncOptions(3).stride(2));
  case Pool::none:
    break;
  }
  return x;
}

/// A pooling, then convolutions in sequence, then possibly some in parallel.
struct Branch {
  std::vector<Convolution> chain;
  std::vector<Convolution> fork = {};
  Pool pool = Pool::none;
};

/// Parallel branches.
class MixedImpl : public torch::nn::Module {
public:
  explicit MixedImpl(const std::vector<Branch>& branches) {
    for (const auto& branch : branches) {
      auto& made = branches_.emplace_back();
      made.pool = branch.pool;
      for (const auto& shape : branch.chain)
        made.chain.push_back(add(shape));
      for (const auto& shape : branch.fork)
        made.fork.push_back(add(shape));
    }
  }

  at::Tensor forward(const at::Tensor& input) {
    std::vector<at::Tensor> outputs;
    for (const auto& branch : branches_) {
      auto x = pooled(input, branch.pool);
      for (const auto& convolution : branch.chain)
        x = convolution->forward(x);
      if (branch.fork.empty())
        outputs.push_back(x);
      for (const auto& convolution : branch.fork)
        outputs.push_back(convolution->forward(x));
    }
    return at::cat(outputs, 1);
  }

private:
  using Layers = std::vector<std::shared_ptr<ConvolutionImpl>>;
  struct Built {
    Layers chain, fork;
    Pool pool;
  };
  std::shared_ptr<ConvolutionImpl> add(const Convolution& shape) {
    return register_module(shape.name, std::make_shared<ConvolutionImpl>(shape));
  }
  std::vector<Built> branches_;
};

std::vector<Branch> mixed_35(std::int64_t in, std::int64_t pool) {
  return {{.chain = {{"branch1x1", in, 64, 1, 1}}},
          {.chain = {{"branch5x5_1", in, 48, 1, 1}, {"branch5x5_2", 48, 64, 5, 5}}},
          {.chain = {{"branch3x3dbl_1", in, 64, 1, 1},
                     {"branch3x3dbl_2", 64, 96, 3, 3},
                     {"branch3x3dbl_3", 96, 96, 3, 3}}},
          {.chain = {{"branch_pool", in, pool, 1, 1}}, .pool = Pool::average}};
}

std::vector<Branch> reduction_17(std::int64_t in) {
  return {{.chain = {{"branch3x3", in, 384, 3, 3, 2, false}}},
          {.chain = {{"branch3x3dbl_1", in, 64, 1, 1},
                     {"branch3x3dbl_2", 64, 96, 3, 3},
                     {"branch3x3dbl_3", 96, 96, 3, 3, 2, false}}},
          {.chain = {}, .pool = Pool::maximum}};
}

std::vector<Branch> mixed_17(std::int64_t in, std::int64_t width) {
  return {{.chain = {{"branch1x1", in, 192, 1, 1}}},
          {.chain = {{"branch7x7_1", in, width, 1, 1},
                     {"branch7x7_2", width, width, 1, 7},
                     {"branch7x7_3", width, 192, 7, 1}}},
          {.chain = {{"branch7x7dbl_1", in, width, 1, 1},
                     {"branch7x7dbl_2", width, width, 7, 1},
                     {"branch7x7dbl_3", width, width, 1, 7},
                     {"branch7x7dbl_4", width, width, 7, 1},
                     {"branch7x7dbl_5", width, 192, 1, 7}}},
          {.chain = {{"branch_pool", in, 192, 1, 1}}, .pool = Pool::average}};
}

std::vector<Branch> reduction_8(std::int64_t in) {
  return {{.chain = {{"branch3x3_1", in, 192, 1, 1}, {"branch3x3_2", 192, 320, 3, 3, 2, false}}},
          {.chain = {{"branch7x7x3_1", in, 192, 1, 1},
                     {"branch7x7x3_2", 192, 192, 1, 7},
                     {"branch7x7x3_3", 192, 192, 7, 1},
                     {"branch7x7x3_4", 192, 192, 3, 3, 2, false}}},
          {.chain = {}, .pool = Pool::maximum}};
}

std::vector<Branch> mixed_8(std::int64_t in) {
  return {{.chain = {{"branch1x1", in, 320, 1, 1}}},
          {.chain = {{"branch3x3_1", in, 384, 1, 1}},
           .fork = {{"branch3x3_2a", 384, 384, 1, 3}, {"branch3x3_2b", 384, 384, 3, 1}}},
          {.chain = {{"branch3x3dbl_1", in, 448, 1, 1}, {"branch3x3dbl_2", 448, 384, 3, 3}},
           .fork = {{"branch3x3dbl_3a", 384, 384, 1, 3}, {"branch3x3dbl_3b", 384, 384, 3, 1}}},
          {.chain = {{"branch_pool", in, 192, 1, 1}}, .pool = Pool::average}};
}

/// The second head, on the last feature map of 17x17.
class AuxiliaryImpl : public torch::nn::Module {
public:
  explicit AuxiliaryImpl(std::int64_t classes) {
    conv0_ = register_module(
        "conv0", std::make_shared<ConvolutionImpl>(Convolution{"conv0", 768, 128, 1, 1}));
    conv1_ = register_module(
        "conv1", std::make_shared<ConvolutionImpl>(Convolution{"conv1", 128, 768, 5, 5, 1, false}));
    fc_ = register_module("fc", torch::nn::Linear(768, classes));
  }
  at::Tensor forward(const at::Tensor& input) {
    auto x = functional::avg_pool2d(input, functional::AvgPool2dFuncOptions(5).stride(3));
    return fc_->forward(conv1_->forward(conv0_->forward(x)).mean({2, 3}));
  }

private:
  std::shared_ptr<ConvolutionImpl> conv0_, conv1_;
  torch::nn::Linear fc_{nullptr};
};

} // namespace

struct InceptionImpl::Stage {
  std::function<at::Tensor(const at::Tensor&)> forward;
  bool feeds_auxiliary = false; // its output
};

InceptionImpl::~InceptionImpl() = default;

InceptionImpl::InceptionImpl(const InceptionOptions& options) : options_(options) {
  build_stages();
  if (options_.auxiliary)
    auxiliary_ = register_module("AuxLogits", std::make_shared<AuxiliaryImpl>(options_.classes));
  fc_ = register_module("fc", torch::nn::Linear(feature_size(), options_.classes));
  initialise();
}

void InceptionImpl::build_stages() {
  const auto add = [&](const std::string& name, auto layer) {
    register_module(name, layer);
    stages_.push_back({.forward = [layer](const at::Tensor& x) { return layer->forward(x); }});
  };
  const auto plain = [&](const Convolution& shape) {
    add(shape.name, std::make_shared<ConvolutionImpl>(shape));
  };
  const auto mixed = [&](const char* name, const std::vector<Branch>& branches) {
    add(name, std::make_shared<MixedImpl>(branches));
  };
  const auto pool = [&] {
    stages_.push_back({.forward = [](const at::Tensor& x) { return pooled(x, Pool::maximum); }});
  };
  plain({"Conv2d_1a_3x3", 3, 32, 3, 3, 2, false});
  plain({"Conv2d_2a_3x3", 32, 32, 3, 3, 1, false});
  plain({"Conv2d_2b_3x3", 32, 64, 3, 3});
  pool();
  plain({"Conv2d_3b_1x1", 64, 80, 1, 1});
  plain({"Conv2d_4a_3x3", 80, 192, 3, 3, 1, false});
  pool();
  mixed("Mixed_5b", mixed_35(192, 32));
  mixed("Mixed_5c", mixed_35(256, 64));
  mixed("Mixed_5d", mixed_35(288, 64));
  mixed("Mixed_6a", reduction_17(288));
  mixed("Mixed_6b", mixed_17(768, 128));
  mixed("Mixed_6c", mixed_17(768, 160));
  mixed("Mixed_6d", mixed_17(768, 160));
  mixed("Mixed_6e", mixed_17(768, 192));
  stages_.back().feeds_auxiliary = true;
  mixed("Mixed_7a", reduction_8(768));
  mixed("Mixed_7b", mixed_8(1280));
  mixed("Mixed_7c", mixed_8(2048));
}

/// Normal weights with deviation 0.1. The auxiliary head's last convolution has 0.01 and its linear
/// layer 0.001, so that the head has little influence at first.
void InceptionImpl::initialise() {
  const at::NoGradGuard guard;
  for (auto& item : named_parameters()) {
    auto& tensor = item.value();
    const auto& name = item.key();
    const bool weight = tensor.dim() > 1;
    if (weight)
      tensor.normal_(0,
                     name == "AuxLogits.conv1.conv.weight" ? 0.01
                     : name == "AuxLogits.fc.weight"       ? 0.001
                                                           : 0.1,
                     options_.generator);
    else if (name == "fc.bias" || name == "AuxLogits.fc.bias")
      tensor.zero_();
  }
}

void InceptionImpl::seed_dropout(std::uint64_t seed) {
  dropout_ = at::make_generator<at::CPUGeneratorImpl>(seed);
}

at::Tensor InceptionImpl::dropped(const at::Tensor& x) const {
  if (!is_training() || options_.dropout == 0)
    return x;
  const double kept = 1 - options_.dropout;
  const auto mask = at::empty(x.sizes(), at::kFloat).bernoulli_(kept, dropout_).div_(kept);
  return x * mask.to(x.device(), x.scalar_type());
}

at::Tensor InceptionImpl::trunk(at::Tensor x, at::Tensor* auxiliary) {
  for (const auto& stage : stages_) {
    x = stage.forward(x);
    if (auxiliary && stage.feeds_auxiliary)
      *auxiliary = std::static_pointer_cast<AuxiliaryImpl>(auxiliary_)->forward(x);
  }
  return x.mean({2, 3});
}

ClassifierOutputs InceptionImpl::forward(at::Tensor pictures) {
  ClassifierOutputs outputs;
  const bool both = auxiliary_ && is_training();
  const auto seen = trunk(std::move(pictures), both ? &outputs.auxiliary : nullptr);
  outputs.logits = head(dropped(seen));
  return outputs;
}

} // namespace troupe::learner
