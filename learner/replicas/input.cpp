#include "learner/replicas/input.hpp"

#include <stdexcept>

namespace troupe::learner {
namespace {

std::int64_t divide(std::int64_t global_batch_size, int parts, const char* what) {
  if (parts < 1 || global_batch_size < 1 || global_batch_size % parts != 0)
    throw std::invalid_argument("the global batch size " + std::to_string(global_batch_size)
                                + " cannot be split evenly over " + std::to_string(parts) + ' '
                                + what + "; make it a multiple of the number of " + what);
  return global_batch_size / parts;
}

} // namespace

std::int64_t InputContext::per_replica_batch_size(std::int64_t global_batch_size) const {
  return divide(global_batch_size, num_replicas_in_sync, "replicas");
}

std::int64_t InputContext::per_pipeline_batch_size(std::int64_t global_batch_size) const {
  if (num_input_pipelines > num_replicas_in_sync) // asynchronous: each pipeline reads whole batches
    return global_batch_size;
  per_replica_batch_size(global_batch_size);
  return divide(global_batch_size, num_input_pipelines, "input pipelines");
}

TensorMap part_of_batch(const TensorMap& batch, int part, int parts) {
  TensorMap result;
  for (const auto& [name, tensor] : batch) {
    if (tensor.dim() == 0 || tensor.size(0) % parts != 0)
      throw std::invalid_argument(
          "input: the rows of \"" + name + "\", "
          + (tensor.dim() == 0 ? "a scalar," : std::to_string(tensor.size(0)))
          + " cannot be split evenly over " + std::to_string(parts)
          + " replicas; let the pipeline give a multiple of them (per_pipeline_batch_size)");
    const auto rows = tensor.size(0) / parts;
    result[name] = tensor.narrow(0, part * rows, rows);
  }
  return result;
}

} // namespace troupe::learner
