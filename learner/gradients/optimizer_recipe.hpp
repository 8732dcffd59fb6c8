#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

namespace troupe::learner {

/// What an optimizer is, without its parameters and moments, in a form that travels.
struct OptimizerRecipe {
  std::string name; // "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "FusedSgd", "FusedTorchAdam",
                    // "FusedAdamW", "FusedAdam"
  /// Per param group its numbers by the names that LibTorch gives them ("lr", "momentum", "beta1");
  /// booleans are 0 or 1.
  std::vector<std::map<std::string, double>> groups;
  bool operator==(const OptimizerRecipe&) const = default;
};

/// Parameters of each param group, in order.
using ParameterGroups = std::vector<std::vector<at::Tensor>>;

/// How a recipe is read off an optimizer, and how one is made of it. For optimizers of your own
/// give functions of your own, which know their name.
using OptimizerDescriber = std::function<OptimizerRecipe(const torch::optim::Optimizer&)>;
using OptimizerMaker = std::function<std::unique_ptr<torch::optim::Optimizer>(
    const OptimizerRecipe&, const ParameterGroups&)>;

/// Of the optimizers named above. Throws std::invalid_argument that names the type of any other
/// (also of a class derived from one of them: its step may be another).
OptimizerRecipe describe(const torch::optim::Optimizer& optimizer);

/// An optimizer without moments for these parameters. Some groups may have none; FusedAdam takes
/// one parameter in all. Throws std::invalid_argument on an unknown name, a number that is missing,
/// unknown or refused by LibTorch, and another count of groups.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerRecipe& recipe,
                                                        const ParameterGroups& parameters);

/// The learning rate of each param group, and setting them. Throws std::invalid_argument when there
/// is not one for each.
std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer);
void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates);

} // namespace troupe::learner
