#include <sstream>

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/serialize/archive.h>

#include "tests/doctest_torch.hpp"

#include "learner/nn/kernels/fused_torch_adam.hpp"

namespace troupe::learner {
namespace {

using torch::optim::Optimizer;
using torch::optim::OptimizerParamGroup;

/// Channels-last convolution weights, and biases without weight decay that get no gradient until
/// the third step.
struct Model {
  explicit Model(at::ScalarType type) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
    weight = torch::randn({6, 5, 3, 3}, generator, type)
                 .contiguous(at::MemoryFormat::ChannelsLast)
                 .requires_grad_();
    bias = torch::randn({37}, generator, type).requires_grad_();
  }
  at::Tensor weight, bias;
};

template <class Kind, class Options>
std::unique_ptr<Optimizer> optimizer_of(const Model& model, const Options& options) {
  auto plain = std::make_unique<Options>(options);
  plain->weight_decay(0);
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{model.weight}, std::make_unique<Options>(options));
  groups.emplace_back(std::vector<at::Tensor>{model.bias}, std::move(plain));
  return std::make_unique<Kind>(groups, options);
}

void steps(Optimizer& optimizer, Model& model, int first, int last) {
  for (int step = first; step < last; ++step) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(step));
    const auto gradient =
        torch::randn(model.weight.sizes(), generator, at::kDouble).to(model.weight.scalar_type());
    model.weight.mutable_grad() =
        step % 2 ? gradient.contiguous(at::MemoryFormat::ChannelsLast) : gradient;
    if (step >= 2)
      model.bias.mutable_grad() =
          torch::randn(model.bias.sizes(), generator, at::kDouble).to(model.bias.scalar_type());
    optimizer.step();
  }
}

double distance(const Model& a, const Model& b) {
  const auto of = [](const at::Tensor& x, const at::Tensor& y) {
    return (x - y).abs().max().item<double>();
  };
  return std::max(of(a.weight, b.weight), of(a.bias, b.bias));
}

/// Largest difference between LibTorch's optimizer and the fused one after ten steps.
template <class Plain, class Fused, class Options>
double after_ten(const Options& options, at::ScalarType type) {
  Model theirs(type), ours(type);
  const auto plain = optimizer_of<Plain>(theirs, options);
  const auto fused = optimizer_of<Fused>(ours, options);
  steps(*plain, theirs, 0, 10);
  steps(*fused, ours, 0, 10);
  CHECK(distance(ours, Model(type)) > 0.01); // the parameters have changed
  return distance(theirs, ours);
}

} // namespace

TEST_CASE("The fused Adam and AdamW make LibTorch's steps, with decay, groups and late gradients") {
  using torch::optim::AdamOptions;
  using torch::optim::AdamWOptions;
  for (const bool amsgrad : {false, true})
    for (const double decay : {0.0, 0.3}) {
      CAPTURE(amsgrad);
      CAPTURE(decay);
      const auto adam = AdamOptions(0.02).betas({0.8, 0.95}).weight_decay(decay).amsgrad(amsgrad);
      const auto adamw = AdamWOptions(0.02).betas({0.8, 0.95}).weight_decay(decay).amsgrad(amsgrad);
      CHECK(after_ten<torch::optim::Adam, FusedTorchAdam>(adam, at::kDouble) < 1e-12);
      CHECK(after_ten<torch::optim::AdamW, FusedAdamW>(adamw, at::kDouble) < 1e-12);
      CHECK(after_ten<torch::optim::Adam, FusedTorchAdam>(adam, at::kFloat) < 2e-6);
      CHECK(after_ten<torch::optim::AdamW, FusedAdamW>(adamw, at::kFloat) < 2e-6);
    }
}

TEST_CASE("The fused Adam follows its param group's learning rate and changes nothing at rate 0") {
  Model model(at::kFloat);
  const auto fused = optimizer_of<FusedTorchAdam>(model, torch::optim::AdamOptions(0.1));
  steps(*fused, model, 0, 4);
  const auto bias = model.bias.detach().clone();
  const auto weight = model.weight.detach().clone();
  fused->param_groups()[1].options().set_lr(0);
  steps(*fused, model, 4, 5);
  CHECK(model.bias.detach().equal(bias));
  CHECK_FALSE(model.weight.detach().equal(weight));
}

TEST_CASE("A state saved by torch::optim::AdamW continues in the fused AdamW") {
  const auto options = torch::optim::AdamWOptions(0.02).weight_decay(0.1);
  Model theirs(at::kDouble), ours(at::kDouble);
  const auto plain = optimizer_of<torch::optim::AdamW>(theirs, options);
  steps(*plain, theirs, 0, 5);
  std::stringstream file;
  torch::serialize::OutputArchive out;
  plain->save(out);
  out.save_to(file);
  {
    const at::NoGradGuard guard;
    ours.weight.copy_(theirs.weight);
    ours.bias.copy_(theirs.bias);
  }
  const auto fused = optimizer_of<FusedAdamW>(ours, options);
  torch::serialize::InputArchive in;
  in.load_from(file);
  fused->load(in);
  steps(*plain, theirs, 5, 9);
  steps(*fused, ours, 5, 9);
  CHECK(distance(theirs, ours) < 1e-12);
}

} // namespace troupe::learner
