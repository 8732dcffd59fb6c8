#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include <set>

#include "learner/nn/kernels/fused_sgd.hpp"
#include "learner/nn/module_state.hpp"
#include "learner/workloads/resnet.hpp"

namespace troupe::learner {
namespace {

std::int64_t count(const ResNet& network) {
  std::int64_t sum = 0;
  for (const auto& parameter : network->parameters())
    sum += parameter.numel();
  return sum;
}

} // namespace

TEST_CASE("Each depth has the published number of parameters") {
  // torchvision's resnet18 … resnet152, 1000 classes.
  const std::map<int, std::int64_t> published{
      {18, 11'689'512}, {34, 21'797'672}, {50, 25'557'032}, {101, 44'549'160}, {152, 60'192'808}};
  for (const auto& [depth, parameters] : published)
    CHECK(count(ResNet(ResNetOptions{.depth = depth})) == parameters);
  CHECK_THROWS_AS(ResNet(ResNetOptions{.depth = 51}), std::invalid_argument);
}

TEST_CASE("The networks for CIFAR have the number of parameters that their shapes imply") {
  // 3x3 convolutions of 16, 32 and 64 channels, n blocks each: He et al. (2016), table 6, say 0.27,
  // 0.46, 0.66, 0.85 and 1.7 million.
  for (const int depth : {20, 32, 44, 56, 110}) {
    const int blocks = (depth - 2) / 6;
    std::int64_t expected = 3 * 16 * 9 + 2 * 16 + 64 * 10 + 10;
    std::int64_t in = 16;
    for (const std::int64_t width : {16, 32, 64})
      for (int i = 0; i < blocks; ++i, in = width)
        expected += in * width * 9 + width * width * 9 + 4 * width;
    CHECK(count(ResNet(ResNetOptions{.depth = depth, .classes = 10})) == expected);
  }
  CHECK(count(ResNet(ResNetOptions{.depth = 20, .classes = 10})) == 269'722);
  CHECK(count(ResNet(ResNetOptions{.depth = 18, .small_stem = true}))
        == 11'689'512 - 64 * 3 * (49 - 9));
}

TEST_CASE("Networks with a small stem accept small pictures, and their shortcuts have no weights") {
  ResNet network(ResNetOptions{.depth = 20, .classes = 10, .channels = 1});
  network->eval();
  CHECK(network->forward(torch::randn({2, 1, 28, 28})).sizes() == at::IntArrayRef({2, 10}));
  CHECK(network->features(torch::randn({2, 1, 8, 8})).sizes() == at::IntArrayRef({2, 64}));
  for (const auto& item : network->named_parameters())
    CHECK(item.key().find("downsample") == std::string::npos);
  // Without its convolutions, a layer passes on every second pixel, with zeros in the new channels.
  const at::NoGradGuard guard;
  for (const auto& item : network->named_parameters())
    if (item.key().starts_with("layer2.") && item.value().dim() == 4)
      item.value().zero_();
  const auto x = torch::rand({1, 16, 4, 4});
  const auto y = network->named_children()["layer2"]->as<torch::nn::Sequential>()->forward(x);
  const auto none = torch::zeros({1, 8, 2, 2});
  CHECK(torch::equal(y, torch::cat({none, x.slice(2, 0, 4, 2).slice(3, 0, 4, 2), none}, 1)));
}

TEST_CASE(
    "Parameters and buffers have torchvision's names, and the stride lies in the 3x3 convolution") {
  ResNet network;
  std::set<std::string> names;
  for (const auto& item : network->named_parameters())
    names.insert(item.key());
  for (const auto& item : network->named_buffers())
    names.insert(item.key());
  CHECK(names.size() == 161 + 159);
  for (const char* name :
       {"conv1.weight", "bn1.running_mean", "layer1.0.conv3.weight", "layer1.0.downsample.1.bias",
        "layer4.2.bn3.num_batches_tracked", "fc.bias"})
    CHECK(names.contains(name));
  const auto x = torch::randn({1, 3, 64, 64});
  CHECK(network->forward(x).sizes() == at::IntArrayRef({1, 1000}));
  const auto named = network->named_modules();
  CHECK(named["layer2.0.conv1"]->as<torch::nn::Conv2d>()->options.stride()->at(0) == 1);
  CHECK(named["layer2.0.conv2"]->as<torch::nn::Conv2d>()->options.stride()->at(0) == 2);
}

TEST_CASE("The channels-last layout does not change the result") {
  for (const int depth : {18, 50}) {
    ResNet network(ResNetOptions{.depth = depth, .classes = 10});
    network->eval();
    const auto x = torch::randn({2, 3, 64, 64});
    const auto before = network->forward(x);
    lay_out_channels_last(*network);
    const auto after = network->forward(x.contiguous(at::MemoryFormat::ChannelsLast));
    CHECK(torch::allclose(before, after, 1e-3, 1e-4));
  }
}

TEST_CASE("With zero_last_gamma, the last gamma of a block starts at zero, and the block starts as "
          "the identity") {
  ResNet network(ResNetOptions{.depth = 50, .zero_last_gamma = true});
  const auto parameters = network->named_parameters();
  CHECK(parameters["layer1.1.bn3.weight"].abs().max().item<double>() == 0);
  CHECK(torch::equal(parameters["layer1.1.bn2.weight"], torch::ones({64})));
  const at::NoGradGuard guard;
  auto* layer = network->named_children()["layer1"]->as<torch::nn::Sequential>();
  const auto x = torch::rand({2, 256, 4, 4});
  CHECK(torch::equal((layer->begin() + 1)->forward(x), x));
}

TEST_CASE("FusedSgd makes the steps of LibTorch's SGD") {
  for (const auto& options :
       {torch::optim::SGDOptions(0.1), torch::optim::SGDOptions(0.1).momentum(0.9),
        torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(true)}) {
    const auto start = torch::randn({3, 4, 5, 6}).contiguous(at::MemoryFormat::ChannelsLast);
    auto a = start.clone().requires_grad_();
    auto b = start.clone().requires_grad_();
    auto unused = torch::ones({2}).requires_grad_();
    torch::optim::SGD plain(std::vector<at::Tensor>{a}, options);
    FusedSgd fused(std::vector<at::Tensor>{b, unused}, options);
    for (int step = 0; step < 5; ++step) {
      const auto gradient = torch::randn({3, 4, 5, 6});
      a.mutable_grad() = gradient.clone();
      b.mutable_grad() =
          step % 2 ? gradient.contiguous(at::MemoryFormat::ChannelsLast) : gradient.clone();
      plain.step();
      fused.step();
    }
    CHECK(torch::allclose(a, b, 1e-5, 1e-6));
    CHECK(torch::equal(unused, torch::ones({2})));
  }
}

} // namespace troupe::learner
