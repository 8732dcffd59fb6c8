#include "learner/gradients/not_finite.hpp"

#include <cmath>
#include <map>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include "env/text/joined.hpp"
#include "learner/gradients/gradient_buckets.hpp"

namespace troupe::learner {
namespace {

std::string parameter_in_words(std::size_t index, const std::vector<at::Tensor>& parameters,
                               const std::vector<std::string>& names) {
  const auto shape = ", shape " + c10::str(parameters[index].sizes());
  if (index < names.size() && !names[index].empty())
    return "the gradient of parameter \"" + names[index] + "\"" + shape;
  return "the gradient of parameter " + std::to_string(index) + " of the optimizer" + shape;
}

std::string and_others(std::int64_t others) {
  return others > 0 ? " (nor are those of " + std::to_string(others) + " others)" : "";
}

} // namespace

std::vector<std::string> parameter_names(const torch::nn::Module& module,
                                         const torch::optim::Optimizer& optimizer) {
  std::map<const void*, std::string> known;
  for (const auto& item : module.named_parameters())
    known[item.value().unsafeGetTensorImpl()] = item.key();
  std::vector<std::string> names;
  for (const auto& group : optimizer.param_groups())
    for (const auto& parameter : group.params())
      names.push_back(known[parameter.unsafeGetTensorImpl()]);
  return names;
}

std::string not_finite_on_replicas(const GradientReport& report,
                                   const std::vector<at::Tensor>& parameters,
                                   const std::vector<std::string>& names, int replicas) {
  return parameter_in_words(static_cast<std::size_t>(report.not_finite), parameters, names)
         + ", is not finite on replica " + env::joined(report.not_finite_on) + " of "
         + std::to_string(replicas) + and_others(report.not_finite_count - 1);
}

std::string not_finite_in_all(const std::vector<at::Tensor>& parameters,
                              const std::vector<std::string>& names, int replicas) {
  std::string first;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& gradient = parameters[i].grad();
    if (!gradient.defined() || std::isfinite(gradient.norm().item<double>()))
      continue;
    if (count++ == 0)
      first = parameter_in_words(i, parameters, names);
  }
  if (count == 0)
    return "the norm of the gradients overflows";
  return first + ", is not finite"
         + (replicas > 1 ? " after averaging over " + std::to_string(replicas) + " replicas" : "")
         + and_others(count - 1);
}

} // namespace troupe::learner
