#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch {
namespace nn {
class Module;
}
namespace optim {
class Optimizer;
}
} // namespace torch

namespace troupe::learner {

struct GradientReport;

/// Returns the names that the optimizer's parameters have in the module, in the optimizer's order,
/// for WrappedOptimizerOptions::names. A parameter that the module does not contain has an empty
/// name.
std::vector<std::string> parameter_names(const torch::nn::Module& module,
                                         const torch::optim::Optimizer& optimizer);

/// Messages about gradients with NaN or infinity. `names` are the names of the parameters and may
/// be empty. This one names the first such parameter and the replicas.
std::string not_finite_on_replicas(const GradientReport& report,
                                   const std::vector<at::Tensor>& parameters,
                                   const std::vector<std::string>& names, int replicas);
/// Names the first parameter whose grad() is not finite, for one replica or after the reduction.
std::string not_finite_in_all(const std::vector<at::Tensor>& parameters,
                              const std::vector<std::string>& names, int replicas);

} // namespace troupe::learner
