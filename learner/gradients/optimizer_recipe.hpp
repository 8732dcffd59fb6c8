#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

namespace troupe::learner {

/// The kind and options of an optimizer, without its parameters and moments, in a form that can be
/// sent to other processes.
struct OptimizerRecipe {
  std::string name; // "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "FusedSgd", "FusedTorchAdam",
                    // "FusedAdamW", "FusedAdam"
  /// The options of each parameter group by LibTorch's names ("lr", "momentum", "beta1"). Booleans
  /// are 0 or 1.
  std::vector<std::map<std::string, double>> groups;
  bool operator==(const OptimizerRecipe&) const = default;
};

/// The parameters of each parameter group, in order.
using ParameterGroups = std::vector<std::vector<at::Tensor>>;

/// Functions that describe an optimizer and make one from a recipe. For your own optimizers provide
/// your own functions.
using OptimizerDescriber = std::function<OptimizerRecipe(const torch::optim::Optimizer&)>;
using OptimizerMaker = std::function<std::unique_ptr<torch::optim::Optimizer>(
    const OptimizerRecipe&, const ParameterGroups&)>;

/// Describes one of the optimizers named above. Throws std::invalid_argument naming the type if it
/// is another one. This includes classes derived from those above, because their step may differ.
OptimizerRecipe describe(const torch::optim::Optimizer& optimizer);

/// Makes an optimizer without moments for these parameters. Groups may be empty. FusedAdam takes
/// exactly one parameter in total. Throws std::invalid_argument if the name is unknown, if an
/// option is missing, unknown or rejected by LibTorch, or if the number of groups is wrong.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerRecipe& recipe,
                                                        const ParameterGroups& parameters);

/// Gets or sets the learning rate of each parameter group. Throws std::invalid_argument if their
/// numbers differ.
std::vector<double> learning_rates(const torch::optim::Optimizer& optimizer);
void set_learning_rates(torch::optim::Optimizer& optimizer, const std::vector<double>& rates);

} // namespace troupe::learner
