#include "experiments/exporting/tensor_files.hpp"

#include <cstring>

#include <torch/types.h>

#include "learner/device/safetensors.hpp"
#include "learner/policy_graph/weight_type.hpp"

namespace troupe::experiments {
namespace {

/// The values as a tensor [rows, …].
template <class T>
at::Tensor tensor_of(const std::vector<T>& values, std::int64_t rows, at::ScalarType type) {
  const std::size_t bytes = values.size() * sizeof(T);
  const auto numbers = static_cast<std::int64_t>(bytes / at::elementSize(type));
  at::Tensor made = at::empty({rows, numbers / rows}, type);
  if (bytes > 0)
    std::memcpy(made.mutable_data_ptr(), values.data(), bytes);
  return made;
}

} // namespace

void write_samples(const std::filesystem::path& path, const PolicySamples& samples, bool picture,
                   const PolicyContract& contract) {
  const std::int64_t rows = samples.count;
  learner::TensorMap tensors{
      {"action", tensor_of(samples.actions, rows, at::kFloat)},
      {"first", tensor_of(samples.first, rows, at::kByte).flatten()},
      {"observation", tensor_of(samples.frames, rows, picture ? at::kByte : at::kFloat)},
      {"vectors", tensor_of(samples.vectors, rows, at::kFloat)}};
  if (!samples.rounded.empty())
    tensors["rounded_action"] = tensor_of(samples.rounded, rows, at::kFloat);
  learner::write_safetensors(path, tensors, {{"contract", contract_text(contract)}});
}

void write_parameters(const std::filesystem::path& path, const learner::PolicyGraph& graph,
                      const PolicyContract& contract) {
  learner::write_safetensors(path, learner::tensors_of(graph),
                             {{"contract", contract_text(contract)}});
}

} // namespace troupe::experiments
