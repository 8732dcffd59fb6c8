#include "actors/roles/role_histograms.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "learner/replicas/replica.hpp"

namespace troupe::actors {

namespace {

constexpr std::size_t kMostTensors = 64;
constexpr std::int64_t kMostValues = 65'536; // per tensor
constexpr std::size_t kMostComponents = 16;  // of an action that get separate histograms

learner::Histogram histogram_of_tensor(const at::Tensor& tensor) {
  at::Tensor flat = tensor.detach().reshape({-1});
  if (const auto stride = (flat.numel() + kMostValues - 1) / kMostValues; stride > 1)
    flat = flat.slice(0, 0, flat.numel(), stride);
  flat = flat.to(at::kCPU, at::kFloat).contiguous();
  return learner::histogram_of(
      std::span<const float>(flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())));
}

/// Returns "critic.0.weight" for "adam.exp_avg.critic.0.weight", and nothing for other names.
std::optional<std::string> name_of_mean(const std::string& name) {
  const std::string part = "exp_avg.";
  const auto at = name.find(part);
  if (at == std::string::npos)
    return std::nullopt;
  return name.substr(at + part.size());
}

void add_tensor(wire::Distributions& out, const std::string& name, const at::Tensor& tensor) {
  if (tensor.defined() && tensor.is_floating_point() && tensor.numel() > 0)
    put(histogram_of_tensor(tensor), (*out.mutable_histograms())[name]);
}

bool is_target(const std::string& name) {
  return name.find("target") != std::string::npos;
}

} // namespace

wire::Distributions learner_histograms(learner::Replica& replica) {
  wire::Distributions made;
  std::size_t count = 0;
  for (const auto& [name, tensor] : replica.parameters())
    if (!is_target(name) && count++ < kMostTensors)
      add_tensor(made, "parameters/" + name, tensor);
  count = 0;
  for (const auto& [name, tensor] : replica.optimizer_state())
    if (const auto its = name_of_mean(name); its && count++ < kMostTensors)
      add_tensor(made, "gradient_means/" + *its, tensor);
  return made;
}

ActionHistograms::ActionHistograms(const replay::TransitionSpec& transitions) {
  const auto components = static_cast<std::size_t>(transitions.action_size);
  const bool each = components <= kMostComponents;
  std::int64_t most = 0; // choices of any component; 0: all components are numbers in [-1, 1]
  for (std::size_t i = 0; i < components; ++i)
    most = std::max<std::int64_t>(most, transitions.choices_of(i));
  for (std::size_t i = 0; i < (each ? components : 1); ++i) {
    const std::int64_t choices = each ? transitions.choices_of(i) : most;
    if (choices > 0)
      empty_.emplace_back(-0.5, static_cast<double>(choices) - 0.5,
                          static_cast<std::size_t>(choices));
    else
      empty_.emplace_back(-1.0, 1.0);
  }
  counted_ = empty_;
}

void ActionHistograms::add(std::span<const float> actions) {
  for (std::size_t i = 0; i < actions.size() && !counted_.empty(); ++i)
    counted_[i % counted_.size()].add(static_cast<double>(actions[i]));
}

wire::Distributions ActionHistograms::take() {
  wire::Distributions made;
  for (std::size_t i = 0; i < counted_.size(); ++i)
    put(counted_[i],
        (*made.mutable_histograms())[counted_.size() == 1 ? std::string("actions")
                                                          : "actions/" + std::to_string(i)]);
  counted_ = empty_;
  return made;
}

} // namespace troupe::actors
