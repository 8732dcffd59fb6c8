#include "actors/protocol/batch.hpp"

#include <string>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Functions.h>

#include "learner/tensor_type.hpp"

namespace troupe::actors {

namespace {

template <class T>
std::span<T> whole(at::Tensor& tensor) {
  return {static_cast<T*>(tensor.data_ptr()), tensor.nbytes() / sizeof(T)};
}

std::vector<std::int64_t> joined(std::vector<std::int64_t> shape,
                                 const std::vector<std::int64_t>& more) {
  shape.insert(shape.end(), more.begin(), more.end());
  return shape;
}

} // namespace

BatchBuffer::BatchBuffer(const replay::TransitionSpec& spec, std::int64_t rows, bool weighted)
    : keys_(static_cast<std::size_t>(rows)) {
  // Pinned memory lets the copy to a GPU overlap with kernels that run there.
  const auto kind = [](at::ScalarType type) {
    return at::TensorOptions().dtype(type).pinned_memory(at::hasCUDA());
  };
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape,
                       at::ScalarType type) -> at::Tensor& {
    return tensors[name] = at::empty(shape, kind(type));
  };
  const std::vector<std::int64_t> steps =
      spec.is_sequence() ? std::vector{rows, spec.sequence_steps} : std::vector{rows};
  const env::ArraySpec observation = spec.observation();
  const auto seen = spec.is_sequence() ? std::vector{rows, spec.sequence_steps + 1} : steps;
  const auto observed = joined(seen, observation.shape);
  view.observation =
      whole<std::byte>(add("observation", observed, learner::tensor_type(observation.type)));
  view.action = whole<float>(add("action", joined(steps, {spec.action_size}), at::kFloat));
  view.reward = whole<float>(add("reward", steps, at::kFloat));
  view.discount = whole<float>(add("discount", steps, at::kFloat));
  if (spec.running_return)
    view.running_return = whole<float>(add("running_return", steps, at::kFloat));
  view.key = keys_;
  if (spec.is_sequence())
    view.first = whole<std::uint8_t>(add("first", seen, at::kByte));
  else
    view.next_observation =
        whole<std::byte>(add("next_observation", observed, learner::tensor_type(observation.type)));
  for (const env::ArraySpec& vector : spec.vectors) {
    const auto add_vector = [&](const char* name) {
      return whole<std::byte>(
          add(replay::vector_name(name, vector), joined(seen, vector.shape), at::kFloat));
    };
    view.vectors.push_back(add_vector("observation"));
    if (!spec.is_sequence())
      view.next_vectors.push_back(add_vector("next_observation"));
  }
  for (const env::ArraySpec& extra : spec.extras)
    view.extras.push_back(whole<std::byte>(
        add(extra.name, joined(steps, extra.shape), learner::tensor_type(extra.type))));
  if (!weighted)
    return;
  probabilities_.resize(static_cast<std::size_t>(rows));
  table_items_.resize(static_cast<std::size_t>(rows));
  view.probability = probabilities_;
  view.table_items = table_items_;
  tensors["weight"] = at::ones({rows}, kind(at::kFloat));
}

} // namespace troupe::actors
