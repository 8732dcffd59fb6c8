#include "learner/agents/parts/transition_batch.hpp"

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/types.h>

#include "learner/nn/kernels/ops.hpp"
#include "learner/tensor_type.hpp"

namespace troupe::learner {
namespace {

const at::Tensor& checked(const TensorMap& batch, const std::string& name,
                          const std::vector<std::int64_t>& shape, at::ScalarType type,
                          std::int64_t update) {
  const auto found = batch.find(name);
  if (found == batch.end())
    throw std::invalid_argument("the batch has no tensor '" + name + "'");
  const at::Tensor& tensor = found->second;
  const bool fits = tensor.dim() == static_cast<std::int64_t>(shape.size()) + 1
                    && tensor.sizes().slice(1) == at::IntArrayRef(shape);
  if (!fits || tensor.size(0) < 1 || tensor.size(0) != batch.begin()->second.size(0)
      || tensor.scalar_type() != type || !tensor.is_contiguous()) {
    std::ostringstream text;
    text << "batch tensor '" << name << "' is " << c10::toString(tensor.scalar_type())
         << tensor.sizes() << "; it must be dense " << c10::toString(type) << " [batch] + "
         << at::IntArrayRef(shape) << " with the batch size of the other tensors";
    throw std::invalid_argument(text.str());
  }
  if (!all_finite(tensor))
    throw std::runtime_error("NaN or infinity in batch tensor '" + name + "' at update "
                             + std::to_string(update) + ": it came from the environment or replay");
  return tensor;
}

} // namespace

TensorMap checked_transitions(const TensorMap& batch, const replay::TransitionSpec& transitions,
                              std::int64_t update) {
  const env::ArraySpec observation = transitions.observation();
  const at::ScalarType type = tensor_type(observation.type);
  TensorMap used;
  const auto use = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                       at::ScalarType wanted) {
    used[name] = checked(batch, name, shape, wanted, update);
  };
  use("observation", observation.shape, type);
  use("next_observation", observation.shape, type);
  for (const env::ArraySpec& vector : transitions.vectors)
    for (const char* name : {"observation", "next_observation"})
      use(replay::vector_name(name, vector), vector.shape, at::kFloat);
  use("action", {transitions.action_size}, at::kFloat);
  use("reward", {}, at::kFloat);
  use("discount", {}, at::kFloat);
  if (transitions.running_return)
    use("running_return", {}, at::kFloat);
  if (batch.contains("weight"))
    use("weight", {}, at::kFloat);
  return used;
}

TensorMap checked_sequences(const TensorMap& batch, const replay::TransitionSpec& transitions,
                            std::int64_t update) {
  TensorMap used;
  const auto use = [&](const env::ArraySpec& one, std::int64_t length) {
    std::vector<std::int64_t> shape = one.shape;
    shape.insert(shape.begin(), length);
    used[one.name] = checked(batch, one.name, shape, tensor_type(one.type), update);
  };
  const std::int64_t steps = transitions.sequence_steps;
  const env::ArraySpec observation = transitions.observation();
  use({"observation", observation.type, observation.shape}, steps + 1);
  for (const env::ArraySpec& vector : transitions.vectors)
    use({replay::vector_name("observation", vector), vector.type, vector.shape}, steps + 1);
  use({"first", env::ElementType::uint8, {}}, steps + 1);
  use({"action", env::ElementType::float32, {transitions.action_size}}, steps);
  use({"reward", env::ElementType::float32, {}}, steps);
  use({"discount", env::ElementType::float32, {}}, steps);
  for (const env::ArraySpec& extra : transitions.extras)
    use(extra, steps);
  if (batch.contains("weight"))
    used["weight"] = checked(batch, "weight", {}, at::kFloat, update);
  return used;
}

} // namespace troupe::learner
