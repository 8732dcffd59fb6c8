#include "learner/gradients/optimizer_recipe.hpp"

#include <cmath>
#include <stdexcept>
#include <typeindex>
#include <utility>

#include <c10/util/Exception.h>
#include <c10/util/Type.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "env/text/joined.hpp"
#include "learner/nn/kernels/fused_adam.hpp"
#include "learner/nn/kernels/fused_sgd.hpp"
#include "learner/nn/kernels/fused_torch_adam.hpp"

namespace troupe::learner {
namespace {

using torch::optim::OptimizerParamGroup;
using Numbers = std::map<std::string, double>;

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

/// One of LibTorch's optimizers, or one with the same options.
template <typename Optimizer, typename Options>
struct PlainOptimizer {
  static std::vector<Numbers> numbers_of(const torch::optim::Optimizer& optimizer) {
    std::vector<Numbers> groups;
    for (const auto& group : optimizer.param_groups()) {
      Options options(static_cast<const Options&>(group.options()));
      Numbers numbers;
      visit_numbers(options, [&](const char* key, auto& number) {
        numbers[key] = static_cast<double>(number);
      });
      groups.push_back(std::move(numbers));
    }
    return groups;
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

std::vector<Numbers> numbers_of_fused_adam(const torch::optim::Optimizer& optimizer) {
  const auto& adam = dynamic_cast<const FusedAdam&>(optimizer);
  return {{{"lr", learning_rates(optimizer).front()},
           {"weight_decay", adam.weight_decay()},
           {"eps", adam.epsilon()}}};
}

/// An optimizer that has recipes.
struct OptimizerKind {
  const char* name;
  std::type_index type;
  std::vector<Numbers> (*numbers_of)(const torch::optim::Optimizer& optimizer); // [param group]
  std::unique_ptr<torch::optim::Optimizer> (*make)(const OptimizerRecipe& recipe,
                                                   const ParameterGroups& parameters);
};

template <typename Optimizer, typename Options>
OptimizerKind plain_kind(const char* name) {
  using Plain = PlainOptimizer<Optimizer, Options>;
  return {name, typeid(Optimizer), Plain::numbers_of, Plain::make};
}

const std::vector<OptimizerKind>& optimizer_kinds() {
  using namespace torch::optim;
  static const std::vector<OptimizerKind> kinds{
      plain_kind<SGD, SGDOptions>("SGD"),
      plain_kind<Adam, AdamOptions>("Adam"),
      plain_kind<AdamW, AdamWOptions>("AdamW"),
      plain_kind<RMSprop, RMSpropOptions>("RMSprop"),
      plain_kind<Adagrad, AdagradOptions>("Adagrad"),
      plain_kind<FusedSgd, SGDOptions>("FusedSgd"),
      plain_kind<FusedTorchAdam, AdamOptions>("FusedTorchAdam"),
      plain_kind<FusedAdamW, AdamWOptions>("FusedAdamW"),
      {"FusedAdam", typeid(FusedAdam), numbers_of_fused_adam, make_fused_adam}};
  return kinds;
}

std::string known_optimizers() {
  return env::joined(optimizer_kinds(), ", ", &OptimizerKind::name);
}

} // namespace

OptimizerRecipe describe(const torch::optim::Optimizer& optimizer) {
  for (const OptimizerKind& kind : optimizer_kinds())
    if (kind.type == typeid(optimizer))
      return {.name = kind.name, .groups = kind.numbers_of(optimizer)};
  throw std::invalid_argument("optimizer " + c10::demangle(typeid(optimizer).name())
                              + " cannot be described: known are " + known_optimizers()
                              + "; give your own describer and maker for it");
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerRecipe& recipe,
                                                        const ParameterGroups& parameters) {
  if (recipe.groups.empty() || recipe.groups.size() != parameters.size())
    throw std::invalid_argument(
        "optimizer " + recipe.name + " of " + std::to_string(recipe.groups.size())
        + " param groups, and parameters of " + std::to_string(parameters.size())
        + "; there must be as many, and at least one");
  for (const OptimizerKind& kind : optimizer_kinds())
    if (kind.name == recipe.name)
      return kind.make(recipe, parameters);
  throw std::invalid_argument("optimizer \"" + recipe.name + "\" is unknown; known are "
                              + known_optimizers() + "; others need your own maker");
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
