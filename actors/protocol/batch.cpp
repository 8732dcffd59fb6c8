#include "actors/protocol/batch.hpp"

#include <ATen/Context.h>
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
  // A pinned batch is copied to a GPU while kernels run there.
  const auto kind = [](at::ScalarType type) {
    return at::TensorOptions().dtype(type).pinned_memory(at::hasCUDA());
  };
  const auto type = observation.type == env::ElementType::uint8 ? at::kByte : at::kFloat;
  tensors["observation"] = at::empty(shape, kind(type));
  tensors["next_observation"] = at::empty(shape, kind(type));
  tensors["action"] = at::empty({rows, spec.action_size}, kind(at::kFloat));
  tensors["reward"] = at::empty({rows}, kind(at::kFloat));
  tensors["discount"] = at::empty({rows}, kind(at::kFloat));
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
  tensors["weight"] = at::ones({rows}, kind(at::kFloat));
}

} // namespace troupe::actors
