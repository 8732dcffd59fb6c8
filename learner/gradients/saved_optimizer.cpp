#include "learner/gradients/saved_optimizer.hpp"

#include <charconv>
#include <set>
#include <stdexcept>

#include <ATen/ops/tensor.h>
#include <torch/optim/optimizer.h>

#include "learner/gradients/optimizer_recipe.hpp"
#include "learner/gradients/optimizer_state.hpp"
#include "learner/gradients/sharded_state.hpp"

namespace troupe::learner {
namespace {

const std::string kPrefix = "optimizer.";
const std::string kPart = kPrefix + "part";
const std::string kRates = kPrefix + "learning_rates";

/// The name of a parameter in checkpoints.
std::string shown(const std::vector<std::string>& names, std::size_t number) {
  const bool all_different =
      !names.empty() && std::set<std::string>(names.begin(), names.end()).size() == names.size()
      && !std::set<std::string>(names.begin(), names.end()).contains("");
  return all_different ? names[number] : std::to_string(number);
}

/// "12.exp_avg" of optimizer_state() becomes "optimizer.exp_avg.fc.weight".
std::string saved_name(const std::string& live, const std::vector<std::string>& names) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(live.data(), live.data() + live.size(), number);
  const auto field = live.substr(static_cast<std::size_t>(end - live.data()) + 1);
  return kPrefix + field + "." + shown(names, number);
}

/// The inverse: restores the names of optimizer_state().
TensorMap live_names(const TensorMap& saved, const std::vector<std::string>& names,
                     std::size_t parameters) {
  std::map<std::string, std::string> numbers;
  for (std::size_t i = 0; i < parameters; ++i)
    numbers[shown(names, i)] = std::to_string(i);
  TensorMap state;
  for (const auto& [name, tensor] : saved) {
    if (!name.starts_with(kPrefix) || name == kRates)
      continue;
    const auto dot = name.find('.', kPrefix.size());
    const auto number =
        dot == std::string::npos ? numbers.end() : numbers.find(name.substr(dot + 1));
    if (number == numbers.end())
      throw std::runtime_error(
          "the wrapped optimizer's state has '" + name
          + "', which belongs to no parameter here; load what the state() of the "
            "same optimizer and parameters gave");
    state[number->second + "." + name.substr(kPrefix.size(), dot - kPrefix.size())] = tensor;
  }
  return state;
}

/// Replaces "12.exp_avg" in a message by the name in the checkpoint.
std::string in_saved_names(std::string message, const std::vector<std::string>& names) {
  const auto begin = message.find('"');
  const auto end = begin == std::string::npos ? begin : message.find('"', begin + 1);
  if (end == std::string::npos)
    return message;
  const auto live = message.substr(begin + 1, end - begin - 1);
  if (live.empty() || live[0] < '0' || live[0] > '9')
    return message;
  return message.replace(begin + 1, live.size(), saved_name(live, names));
}

/// Returns the learning rates in the state; empty if it has none.
std::vector<double> rates_in(const TensorMap& saved, const torch::optim::Optimizer& optimizer) {
  const auto found = saved.find(kRates);
  if (found == saved.end())
    return {};
  const auto groups = static_cast<std::int64_t>(optimizer.param_groups().size());
  const auto rates = found->second.cpu().contiguous();
  if (rates.scalar_type() != at::kDouble || rates.dim() != 1 || rates.numel() != groups)
    throw std::runtime_error("the wrapped optimizer's state has '" + kRates + "' of "
                             + c10::str(rates.scalar_type(), rates.sizes()) + "; it must be Double["
                             + std::to_string(groups) + "], one for each param group");
  const auto* first = rates.const_data_ptr<double>();
  return {first, first + groups};
}

} // namespace

void save_optimizer(ShardedState& optimizer, const std::vector<std::string>& names,
                    TensorMap& out) {
  if (!knows_state_of(optimizer.optimizer())) {
    const auto parts = optimizer.save();
    for (std::size_t i = 0; i < parts.size(); ++i)
      out[kPart + std::to_string(i)] = parts[i];
    return;
  }
  for (const auto& [name, tensor] : optimizer.gather())
    out[saved_name(name, names)] = tensor.clone();
  out[kRates] = at::tensor(learning_rates(optimizer.optimizer()), at::kDouble);
}

void load_optimizer(ShardedState& optimizer, const std::vector<std::string>& names,
                    const TensorMap& saved) {
  std::vector<at::Tensor> parts;
  for (auto part = saved.find(kPart + "0"); part != saved.end();
       part = saved.find(kPart + std::to_string(parts.size())))
    parts.push_back(part->second);
  if (!parts.empty())
    return optimizer.load(parts);
  if (!knows_state_of(optimizer.optimizer()))
    throw std::runtime_error("the wrapped optimizer's state lacks '" + kPart
                             + "0'; load what its state() gave");
  const auto state = live_names(saved, names, optimizer.parameters().size());
  const auto rates = rates_in(saved, optimizer.optimizer());
  try {
    optimizer.scatter(state);
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error("the wrapped optimizer's state cannot be loaded: "
                             + in_saved_names(error.what(), names));
  }
  if (!rates.empty())
    set_learning_rates(optimizer.optimizer(), rates);
}

} // namespace troupe::learner
