#include "learner/gradients/optimizer_recipe.hpp"

#include <array>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <typeinfo>

#include <c10/util/Exception.h>
#include <c10/util/Type.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "learner/nn/kernels/fused_adam.hpp"
#include "learner/nn/kernels/fused_sgd.hpp"
#include "learner/nn/kernels/fused_torch_adam.hpp"

namespace troupe::learner {
namespace {

using torch::optim::OptimizerParamGroup;
using Numbers = std::map<std::string, double>;

constexpr std::string_view kNames = "SGD, Adam, AdamW, RMSprop, Adagrad, FusedSgd, FusedTorchAdam, "
                                    "FusedAdamW, FusedAdam";

// These functions call `visit` with the name of each option and a reference to it.

template <typename Visit>
void visit_numbers(torch::optim::SGDOptions& options, const Visit& visit) {
  visit("lr", options.lr());
  visit("momentum", options.momentum());
  visit("dampening", options.dampening());
  visit("weight_decay", options.weight_decay());
  visit("nesterov", options.nesterov());
}

template <typename Options, typename Visit>
void visit_adam(Options& options, const Visit& visit) {
  visit("lr", options.lr());
  visit("beta1", std::get<0>(options.betas()));
  visit("beta2", std::get<1>(options.betas()));
  visit("eps", options.eps());
  visit("weight_decay", options.weight_decay());
  visit("amsgrad", options.amsgrad());
}

template <typename Visit>
void visit_numbers(torch::optim::AdamOptions& options, const Visit& visit) {
  visit_adam(options, visit);
}

template <typename Visit>
void visit_numbers(torch::optim::AdamWOptions& options, const Visit& visit) {
  visit_adam(options, visit);
}

template <typename Visit>
void visit_numbers(torch::optim::RMSpropOptions& options, const Visit& visit) {
  visit("lr", options.lr());
  visit("alpha", options.alpha());
  visit("eps", options.eps());
  visit("weight_decay", options.weight_decay());
  visit("momentum", options.momentum());
  visit("centered", options.centered());
}

template <typename Visit>
void visit_numbers(torch::optim::AdagradOptions& options, const Visit& visit) {
  visit("lr", options.lr());
  visit("lr_decay", options.lr_decay());
  visit("weight_decay", options.weight_decay());
  visit("initial_accumulator_value", options.initial_accumulator_value());
  visit("eps", options.eps());
}

/// One of LibTorch's optimizers.
template <typename Optimizer, typename Options>
struct OptimizerKind {
  static bool describe(const torch::optim::Optimizer& optimizer, std::string_view name,
                       OptimizerRecipe& recipe) {
    if (typeid(optimizer) != typeid(Optimizer))
      return false;
    recipe.name = name;
    for (const auto& group : optimizer.param_groups()) {
      Options options(static_cast<const Options&>(group.options()));
      Numbers numbers;
      visit_numbers(options, [&](const char* key, auto& number) {
        numbers[key] = static_cast<double>(number);
      });
      recipe.groups.push_back(std::move(numbers));
    }
    return true;
  }

  static Options options_of(const Numbers& numbers, const std::string& where) {
    Options options(0);
    std::size_t known = 0;
    visit_numbers(options, [&]<typename Number>(const char* key, Number& number) {
      const auto at = numbers.find(key);
      if (at == numbers.end())
        throw std::invalid_argument(where + " has no number \"" + key + "\"; it needs one");
      if (!std::isfinite(at->second))
        throw std::invalid_argument(where + ": " + key + " " + std::to_string(at->second)
                                    + " must be a finite number");
      number = static_cast<Number>(at->second);
      ++known;
    });
    if (known == numbers.size())
      return options;
    for (const auto& [key, number] : numbers) {
      bool found = false;
      visit_numbers(options,
                    [&, &sought = key](const char* one, auto&) { found |= sought == one; });
      if (!found)
        throw std::invalid_argument(where + " has an unknown number \"" + key + "\"; leave it out");
    }
    return options;
  }

  static std::unique_ptr<torch::optim::Optimizer> make(const OptimizerRecipe& recipe,
                                                       const ParameterGroups& parameters) {
    std::vector<OptimizerParamGroup> groups;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto where = "param group " + std::to_string(i) + " of optimizer " + recipe.name;
      const auto options = options_of(recipe.groups[i], where);
      try {
        Optimizer(std::vector<at::Tensor>{}, options); // LibTorch checks only the first
      } catch (const c10::Error& error) {
        throw std::invalid_argument(where + ": " + error.what_without_backtrace());
      }
      groups.emplace_back(parameters[i], std::make_unique<Options>(options));
    }
    const auto defaults = options_of(recipe.groups.front(), recipe.name);
    return std::make_unique<Optimizer>(groups, defaults);
  }
};

std::unique_ptr<torch::optim::Optimizer> make_fused_adam(const OptimizerRecipe& recipe,
                                                         const ParameterGroups& parameters) {
  const auto& numbers = recipe.groups.front();
  if (parameters.size() != 1 || parameters.front().size() != 1)
    throw std::invalid_argument("optimizer FusedAdam takes one flat parameter in one param group");
  const auto is_finite = [&](const char* name) {
    return numbers.contains(name) && std::isfinite(numbers.at(name));
  };
  const bool has_epsilon = numbers.contains("eps"); // not in older checkpoints
  if (numbers.size() != (has_epsilon ? 3 : 2) || !is_finite("lr") || !is_finite("weight_decay")
      || (has_epsilon && !is_finite("eps")))
    throw std::invalid_argument("optimizer FusedAdam has finite numbers \"lr\", \"weight_decay\" "
                                "and \"eps\", and no others");
  return std::make_unique<FusedAdam>(parameters.front().front(), numbers.at("lr"),
                                     numbers.at("weight_decay"),
                                     has_epsilon ? numbers.at("eps") : kAdamEpsilon);
}

using SgdKind = OptimizerKind<torch::optim::SGD, torch::optim::SGDOptions>;
using AdamKind = OptimizerKind<torch::optim::Adam, torch::optim::AdamOptions>;
using AdamWKind = OptimizerKind<torch::optim::AdamW, torch::optim::AdamWOptions>;
using RmspropKind = OptimizerKind<torch::optim::RMSprop, torch::optim::RMSpropOptions>;
using FusedSgdKind = OptimizerKind<FusedSgd, torch::optim::SGDOptions>;
using FusedPlain = OptimizerKind<FusedTorchAdam, torch::optim::AdamOptions>;
using FusedDecoupled = OptimizerKind<FusedAdamW, torch::optim::AdamWOptions>;
using AdagradKind = OptimizerKind<torch::optim::Adagrad, torch::optim::AdagradOptions>;

} // namespace

OptimizerRecipe describe(const torch::optim::Optimizer& optimizer) {
  OptimizerRecipe recipe;
  if (SgdKind::describe(optimizer, "SGD", recipe) || AdamKind::describe(optimizer, "Adam", recipe)
      || AdamWKind::describe(optimizer, "AdamW", recipe)
      || RmspropKind::describe(optimizer, "RMSprop", recipe)
      || AdagradKind::describe(optimizer, "Adagrad", recipe)
      || FusedSgdKind::describe(optimizer, "FusedSgd", recipe)
      || FusedPlain::describe(optimizer, "FusedTorchAdam", recipe)
      || FusedDecoupled::describe(optimizer, "FusedAdamW", recipe))
    return recipe;
  if (const auto* adam = dynamic_cast<const FusedAdam*>(&optimizer))
    return {.name = "FusedAdam",
            .groups = {{{"lr", learning_rates(optimizer).front()},
                        {"weight_decay", adam->weight_decay()},
                        {"eps", adam->epsilon()}}}};
  throw std::invalid_argument("optimizer " + c10::demangle(typeid(optimizer).name())
                              + " cannot be described: known are " + std::string(kNames)
                              + "; give your own describer and maker for it");
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerRecipe& recipe,
                                                        const ParameterGroups& parameters) {
  if (recipe.groups.empty() || recipe.groups.size() != parameters.size())
    throw std::invalid_argument(
        "optimizer " + recipe.name + " of " + std::to_string(recipe.groups.size())
        + " param groups, and parameters of " + std::to_string(parameters.size())
        + "; there must be as many, and at least one");
  if (recipe.name == "SGD")
    return SgdKind::make(recipe, parameters);
  if (recipe.name == "Adam")
    return AdamKind::make(recipe, parameters);
  if (recipe.name == "AdamW")
    return AdamWKind::make(recipe, parameters);
  if (recipe.name == "RMSprop")
    return RmspropKind::make(recipe, parameters);
  if (recipe.name == "Adagrad")
    return AdagradKind::make(recipe, parameters);
  if (recipe.name == "FusedSgd")
    return FusedSgdKind::make(recipe, parameters);
  if (recipe.name == "FusedTorchAdam")
    return FusedPlain::make(recipe, parameters);
  if (recipe.name == "FusedAdamW")
    return FusedDecoupled::make(recipe, parameters);
  if (recipe.name == "FusedAdam")
    return make_fused_adam(recipe, parameters);
  throw std::invalid_argument("optimizer \"" + recipe.name + "\" is unknown; known are "
                              + std::string(kNames) + "; others need your own maker");
}

std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (const auto& group : optimizer.param_groups())
    rates.push_back(group.options().get_lr());
  return rates;
}

void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates) {
  auto& groups = optimizer.param_groups();
  if (rates.size() != groups.size())
    throw std::invalid_argument(std::to_string(rates.size()) + " learning rates for "
                                + std::to_string(groups.size())
                                + " param groups; give one for each");
  for (std::size_t i = 0; i < rates.size(); ++i)
    groups[i].options().set_lr(rates[i]);
}

} // namespace troupe::learner
