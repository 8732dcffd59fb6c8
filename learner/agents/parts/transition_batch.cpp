#include "learner/agents/parts/transition_batch.hpp"

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/types.h>

#include "learner/nn/kernels/ops.hpp"

namespace troupe::learner {
namespace {

const at::Tensor& checked(const TensorMap& batch, const char* name,
                          const std::vector<std::int64_t>& shape, at::ScalarType type,
                          std::int64_t update) {
  const auto found = batch.find(name);
  if (found == batch.end())
    throw std::invalid_argument(std::string("the batch has no tensor '") + name + "'");
  const at::Tensor& tensor = found->second;
  const bool fits = tensor.dim() == static_cast<std::int64_t>(shape.size()) + 1
                    && tensor.sizes().slice(1) == at::IntArrayRef(shape);
  if (!fits || tensor.size(0) < 1 || tensor.size(0) != batch.begin()->second.size(0)
      || tensor.scalar_type() != type || !tensor.is_contiguous()) {
    std::ostringstream text;
    text << "batch tensor '" << name << "' is " << c10::toString(tensor.scalar_type())
         << tensor.sizes() << "; it must be dense " << c10::toString(type) << " [batch] + "
         << at::IntArrayRef(shape) << " with the batch of the others";
    throw std::invalid_argument(text.str());
  }
  if (!all_finite(tensor))
    throw std::runtime_error(std::string("NaN or infinity in batch tensor '") + name
                             + "' at update " + std::to_string(update)
                             + ": the environment or replay gave it");
  return tensor;
}

} // namespace

TensorMap checked_transitions(const TensorMap& batch, const replay::TransitionSpec& transitions,
                              std::int64_t update) {
  const env::ArraySpec observation = transitions.observation();
  const at::ScalarType type = observation.type == env::ElementType::uint8 ? at::kByte : at::kFloat;
  TensorMap used;
  const auto use = [&](const char* name, const std::vector<std::int64_t>& shape,
                       at::ScalarType wanted) {
    used[name] = checked(batch, name, shape, wanted, update);
  };
  use("observation", observation.shape, type);
  use("next_observation", observation.shape, type);
  use("action", {transitions.action_size}, at::kFloat);
  use("reward", {}, at::kFloat);
  use("discount", {}, at::kFloat);
  if (batch.contains("weight"))
    use("weight", {}, at::kFloat);
  return used;
}

} // namespace troupe::learner
