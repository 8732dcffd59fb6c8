#include "actors/batch.hpp"

#include <ATen/Functions.h>

namespace troupe::actors {

namespace {

template <class T>
std::span<T> whole(at::Tensor& tensor) {
  return {static_cast<T*>(tensor.data_ptr()), tensor.nbytes() / sizeof(T)};
}

} // namespace

BatchBuffer::BatchBuffer(const replay::TransitionSpec& spec, std::int64_t rows, bool weighted)
    : keys_(static_cast<std::size_t>(rows)) {
  const env::ArraySpec observation = spec.observation();
  std::vector<std::int64_t> shape{rows};
  shape.insert(shape.end(), observation.shape.begin(), observation.shape.end());
  const auto type = observation.type == env::ElementType::uint8 ? at::kByte : at::kFloat;
  tensors["observation"] = at::empty(shape, at::dtype(type));
  tensors["next_observation"] = at::empty(shape, at::dtype(type));
  tensors["action"] = at::empty({rows, spec.action_size}, at::dtype(at::kFloat));
  tensors["reward"] = at::empty({rows}, at::dtype(at::kFloat));
  tensors["discount"] = at::empty({rows}, at::dtype(at::kFloat));
  view = {.observation = whole<std::byte>(tensors["observation"]),
          .next_observation = whole<std::byte>(tensors["next_observation"]),
          .action = whole<float>(tensors["action"]),
          .reward = whole<float>(tensors["reward"]),
          .discount = whole<float>(tensors["discount"]),
          .key = keys_};
  if (!weighted)
    return;
  probabilities_.resize(static_cast<std::size_t>(rows));
  table_items_.resize(static_cast<std::size_t>(rows));
  view.probability = probabilities_;
  view.table_items = table_items_;
  tensors["weight"] = at::ones({rows}, at::dtype(at::kFloat));
}

} // namespace troupe::actors
