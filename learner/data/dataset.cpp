#include "learner/data/dataset.hpp"

#include <cstring>
#include <stdexcept>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randperm.h>

#include "env/split_mix.hpp"
#include "learner/replicas/input.hpp"

namespace troupe::learner {
namespace {

/// As index_select(), but without its threads, because separate threads already read the data
/// ahead.
at::Tensor gather_rows(const at::Tensor& tensor, const at::Tensor& numbers) {
  if (!tensor.is_cpu() || tensor.numel() == 0)
    return tensor.index_select(0, numbers.to(tensor.device()));
  auto sizes = tensor.sizes().vec();
  sizes[0] = numbers.size(0);
  auto result = at::empty(sizes, tensor.options());
  const auto row_bytes = tensor.nbytes() / static_cast<std::size_t>(tensor.size(0));
  const auto* from = static_cast<const char*>(tensor.const_data_ptr());
  auto* to = static_cast<char*>(result.mutable_data_ptr());
  const auto* number = numbers.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < numbers.size(0); ++i, to += row_bytes) {
    if (number[i] < 0 || number[i] >= tensor.size(0))
      throw std::out_of_range("dataset: there is no row " + std::to_string(number[i])
                              + "; rows are from 0 to " + std::to_string(tensor.size(0) - 1));
    std::memcpy(to, from + static_cast<std::size_t>(number[i]) * row_bytes, row_bytes);
  }
  return result;
}

} // namespace

TensorDataset::TensorDataset(TensorMap tensors) : tensors_(std::move(tensors)) {
  if (tensors_.empty())
    throw std::invalid_argument("dataset: there are no tensors");
  for (const auto& [name, tensor] : tensors_)
    if (tensor.dim() == 0 || tensor.size(0) != tensors_.begin()->second.size(0))
      throw std::invalid_argument("dataset: \"" + name + "\" has "
                                  + (tensor.dim() == 0 ? "no" : std::to_string(tensor.size(0)))
                                  + " rows, \"" + tensors_.begin()->first
                                  + "\" has another number; give all the same");
  rows_ = tensors_.begin()->second.size(0);
  for (auto& [name, tensor] : tensors_)
    tensor = tensor.contiguous();
}

TensorMap TensorDataset::rows(const at::Tensor& numbers, std::int64_t) const {
  const auto wanted = numbers.contiguous();
  TensorMap result;
  for (const auto& [name, tensor] : tensors_)
    result[name] = gather_rows(tensor, wanted);
  return result;
}

void EpochPlan::check() const {
  InputContext{.num_replicas_in_sync = replicas}.per_replica_batch_size(global_batch);
  if (steps_per_epoch() < 1)
    throw std::invalid_argument("the data set has " + std::to_string(dataset_rows)
                                + " rows, fewer than " + std::to_string(groups)
                                + " global batches of " + std::to_string(global_batch)
                                + "; lower the global batch size, or the number of sync groups");
}

std::int64_t EpochPlan::steps_per_epoch() const {
  return dataset_rows / (global_batch * groups);
}

at::Tensor EpochPlan::order(std::int64_t epoch) const {
  if (!shuffle)
    return at::arange(dataset_rows, at::kLong);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(
      env::mix_bits(seed + (static_cast<std::uint64_t>(epoch) + 1) * env::kSplitMixStep));
  return at::randperm(dataset_rows, generator, at::kLong);
}

at::Tensor EpochPlan::part(const at::Tensor& order, std::int64_t step) const {
  const auto begin = (step * groups + group) * global_batch;
  const auto rows = global_batch / replicas; // check() refuses a remainder
  return order.narrow(0, begin + rank * rows, rows);
}

} // namespace troupe::learner
