#pragma once
// Comparison of states, and batches that all replicas share. Include LibTorch and
// tests/doctest_torch.hpp first.

#include <functional>
#include <string>
#include <utility>

#include "learner/replicas/input.hpp"

namespace troupe::learner {

inline TensorMap copy_of(const TensorMap& state) {
  TensorMap copy;
  for (const auto& [name, tensor] : state)
    copy[name] = tensor.clone();
  return copy;
}

/// Whether both have the same names and, for names that begin with `prefix`, equal tensors within
/// the relative and absolute tolerance.
inline bool same(const TensorMap& a, const TensorMap& b, double tolerance,
                 const std::string& prefix = "") {
  for (const auto& [name, tensor] : b) {
    if (!name.starts_with(prefix))
      continue;
    const bool close = tolerance == 0 ? torch::equal(a.at(name), tensor)
                                      : torch::allclose(a.at(name), tensor, tolerance, tolerance);
    if (!close)
      return false;
  }
  return a.size() == b.size();
}

/// The same global batches for any number of pipelines, each of which takes its own rows.
inline InputFn shared_batches(std::function<TensorMap(std::uint64_t step)> make) {
  return [make = std::move(make)](const InputContext& context) -> Input {
    return [=, step = static_cast<std::uint64_t>(context.first_step)]() mutable {
      return part_of_batch(make(step++), context.input_pipeline_id, context.num_input_pipelines);
    };
  };
}

} // namespace troupe::learner
