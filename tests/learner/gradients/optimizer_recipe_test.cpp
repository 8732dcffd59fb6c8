#include <limits>

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "learner/gradients/optimizer_recipe.hpp"
#include "learner/gradients/optimizer_state.hpp"
#include "learner/nn/kernels/fused_adam.hpp"
#include "learner/nn/kernels/fused_sgd.hpp"
#include "learner/nn/kernels/fused_torch_adam.hpp"

namespace troupe::learner {
namespace {

using torch::optim::Optimizer;
using torch::optim::OptimizerParamGroup;

std::vector<at::Tensor> two_parameters() {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(3);
  return {torch::randn({4, 3}, generator).requires_grad_(),
          torch::randn({5}, generator).requires_grad_()};
}

/// Two param groups; the second has its own learning rate.
template <typename Kind, typename Options>
std::unique_ptr<Optimizer> make(const std::vector<at::Tensor>& parameters, const Options& first) {
  auto second = std::make_unique<Options>(first);
  second->lr(first.lr() / 3);
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<at::Tensor>{parameters[0]}, std::make_unique<Options>(first));
  groups.emplace_back(std::vector<at::Tensor>{parameters[1]}, std::move(second));
  return std::make_unique<Kind>(groups, first);
}

std::vector<std::unique_ptr<Optimizer>> all_kinds(const std::vector<at::Tensor>& parameters) {
  using namespace torch::optim;
  std::vector<std::unique_ptr<Optimizer>> made;
  made.push_back(make<SGD>(parameters, SGDOptions(0.1).momentum(0.9).nesterov(true)));
  made.push_back(make<SGD>(parameters, SGDOptions(0.1).weight_decay(0.01)));
  made.push_back(make<Adam>(parameters, AdamOptions(0.1).amsgrad(true).betas({0.8, 0.95})));
  made.push_back(make<FusedSgd>(parameters, SGDOptions(0.1).momentum(0.9)));
  made.push_back(make<AdamW>(parameters, AdamWOptions(0.1)));
  made.push_back(make<FusedTorchAdam>(parameters, AdamOptions(0.1).weight_decay(0.2)));
  made.push_back(make<FusedAdamW>(parameters, AdamWOptions(0.1).amsgrad(true)));
  made.push_back(make<RMSprop>(parameters, RMSpropOptions(0.1).centered(true).momentum(0.5)));
  made.push_back(make<Adagrad>(parameters, AdagradOptions(0.1).initial_accumulator_value(0.2)));
  return made;
}

void steps(Optimizer& optimizer, const std::vector<at::Tensor>& parameters, int count, int seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(seed));
  for (int i = 0; i < count; ++i) {
    for (auto parameter : parameters)
      parameter.mutable_grad() = torch::randn(parameter.sizes(), generator);
    optimizer.step();
  }
}

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> made;
  for (const auto& parameter : parameters)
    made.push_back(parameter.detach().clone());
  return made;
}

ParameterGroups groups_of(const std::vector<at::Tensor>& parameters) {
  ParameterGroups groups;
  for (const auto& parameter : parameters)
    groups.push_back({parameter});
  return groups;
}

} // namespace

TEST_CASE("An optimizer made from a recipe and a state continues bit for bit") {
  for (std::size_t kind = 0; kind < all_kinds(two_parameters()).size(); ++kind) {
    CAPTURE(kind);
    auto parameters = two_parameters();
    const auto original = std::move(all_kinds(parameters)[kind]);
    steps(*original, parameters, 3, 1);
    auto others = copies(parameters);
    const auto made = make_optimizer(describe(*original), groups_of(others));
    CHECK(describe(*made) == describe(*original));
    load_optimizer_state(*made, optimizer_state(*original));
    steps(*original, parameters, 4, 2);
    steps(*made, others, 4, 2);
    for (std::size_t i = 0; i < others.size(); ++i)
      CHECK(others[i].equal(parameters[i].detach()));
  }
}

TEST_CASE("FusedAdam continues bit for bit and follows its param group's learning rate") {
  auto parameter = torch::ones({7});
  FusedAdam original(parameter, 0.1, 0.2);
  steps(original, {parameter}, 3, 1);
  auto other = parameter.clone();
  const auto made = make_optimizer(describe(original), {{other}});
  load_optimizer_state(*made, optimizer_state(original));
  set_learning_rates(original, {0.02});
  set_learning_rates(*made, {0.02});
  steps(original, {parameter}, 2, 2);
  steps(*made, {other}, 2, 2);
  CHECK(other.equal(parameter));
  set_learning_rates(*made, {0});
  const auto before = other.clone();
  steps(*made, {other}, 1, 3);
  CHECK(other.equal(before));
}

TEST_CASE("An unknown optimizer is refused by name, and the error lists the known ones") {
  auto parameters = two_parameters();
  const torch::optim::LBFGS other(parameters);
  CHECK_THROWS_WITH_AS(
      describe(other),
      doctest::Contains("torch::optim::LBFGS cannot be described: known are SGD, Adam"),
      std::invalid_argument);
  class OwnAdam : public torch::optim::Adam {
    using Adam::Adam;
  };
  CHECK_THROWS_AS(describe(OwnAdam(parameters)), std::invalid_argument);
  CHECK_THROWS_WITH_AS(make_optimizer({.name = "Lion", .groups = {{}}}, {{}}),
                       doctest::Contains("\"Lion\" is unknown; known are SGD"),
                       std::invalid_argument);
}

TEST_CASE("An invalid recipe is refused, and the error names the number") {
  auto parameters = two_parameters();
  const torch::optim::SGD sgd(parameters, torch::optim::SGDOptions(0.1));
  const auto whole = describe(sgd);
  const ParameterGroups groups{parameters};
  auto broken = whole;
  broken.groups[0].erase("momentum");
  CHECK_THROWS_WITH(make_optimizer(broken, groups), doctest::Contains("no number \"momentum\""));
  broken = whole;
  broken.groups[0]["warmth"] = 1;
  CHECK_THROWS_WITH(make_optimizer(broken, groups), doctest::Contains("\"warmth\""));
  broken = whole;
  broken.groups[0]["lr"] = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(make_optimizer(broken, groups), doctest::Contains("must be a finite number"));
  broken = whole;
  broken.groups[0]["momentum"] = -1;
  CHECK_THROWS_AS(make_optimizer(broken, groups), std::invalid_argument);
  CHECK_THROWS_WITH(make_optimizer(whole, {parameters, {}}), doctest::Contains("1 param groups"));
}

TEST_CASE(
    "A state of other parameters or of another optimizer is refused by the name of a tensor") {
  auto parameters = two_parameters();
  auto kinds = all_kinds(parameters);
  steps(*kinds[2], parameters, 1, 1);
  const auto state = optimizer_state(*kinds[2]);
  CHECK_THROWS_WITH(load_optimizer_state(*kinds[0], state), doctest::Contains("is unexpected"));
  auto wrong = state;
  wrong["1.exp_avg"] = torch::zeros({6});
  CHECK_THROWS_WITH(load_optimizer_state(*kinds[2], wrong), doctest::Contains("\"1.exp_avg\""));
  wrong = state;
  wrong.erase("0.step");
  CHECK_THROWS_WITH(load_optimizer_state(*kinds[2], wrong), doctest::Contains("\"0.step\""));
}

TEST_CASE("An optimizer that refuses a state keeps its own") {
  const auto check = [](Optimizer& optimizer) {
    TensorMap before, other;
    for (const auto& [name, tensor] : optimizer_state(optimizer)) {
      before[name] = tensor.clone();
      other[name] = tensor + 1;
    }
    REQUIRE(!before.empty());
    other["9.warmth"] = torch::zeros({1});
    CHECK_THROWS_WITH(load_optimizer_state(optimizer, other),
                      doctest::Contains("\"9.warmth\" is unexpected"));
    const auto after = optimizer_state(optimizer);
    REQUIRE(after.size() == before.size());
    for (const auto& [name, tensor] : before)
      CHECK(after.at(name).equal(tensor));
  };
  auto parameters = two_parameters();
  for (const auto& optimizer : all_kinds(parameters)) {
    steps(*optimizer, parameters, 2, 1);
    if (!optimizer_state(*optimizer).empty()) // SGD without momentum has no state
      check(*optimizer);
  }
  auto parameter = torch::ones({7});
  FusedAdam fused(parameter, 0.1, 0.2);
  steps(fused, {parameter}, 2, 1);
  check(fused);
}

} // namespace troupe::learner
