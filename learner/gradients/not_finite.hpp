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

/// Names of the optimizer's parameters in the module, in the optimizer's order, for
/// WrappedOptimizerOptions::names. Empty for a parameter that the module does not have.
std::vector<std::string> parameter_names(const torch::nn::Module& module,
                                         const torch::optim::Optimizer& optimizer);

/// Sentences about gradients with NaN or infinity. `names`: of the parameters, or empty.
/// Which parameter, on which of the replicas.
std::string not_finite_on_replicas(const GradientReport& report,
                                   const std::vector<at::Tensor>& parameters,
                                   const std::vector<std::string>& names, int replicas);
/// Names the parameters whose grad() is not finite, on one replica or after the reduction.
std::string not_finite_in_all(const std::vector<at::Tensor>& parameters,
                              const std::vector<std::string>& names, int replicas);

} // namespace troupe::learner
