#include "learner/dataset.hpp"

#include <algorithm>
#include <stdexcept>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/randperm.h>

#include "env/split_mix.hpp"

namespace troupe::learner {

TensorDataset::TensorDataset(TensorMap tensors) : tensors_(std::move(tensors)) {
  if (tensors_.empty())
    throw std::invalid_argument("dataset: there are no tensors");
  for (const auto& [name, tensor] : tensors_)
    if (tensor.dim() == 0 || tensor.size(0) != tensors_.begin()->second.size(0))
      throw std::invalid_argument("dataset: \"" + name + "\" has "
                                  + (tensor.dim() == 0 ? "no" : std::to_string(tensor.size(0)))
                                  + " rows, \"" + tensors_.begin()->first
                                  + "\" another number; give all the same");
  rows_ = tensors_.begin()->second.size(0);
}

TensorMap TensorDataset::rows(const at::Tensor& numbers) const {
  TensorMap result;
  for (const auto& [name, tensor] : tensors_)
    result[name] = tensor.index_select(0, numbers);
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
  const auto round = global_batch * groups;
  const auto rest = dataset_rows % round;
  // The last round is kept only where every replica of every group has a row in it.
  return dataset_rows / round + (keep_last && rest >= std::int64_t{groups} * replicas ? 1 : 0);
}

std::int64_t EpochPlan::dropped_rows() const {
  return std::max<std::int64_t>(0, dataset_rows - steps_per_epoch() * global_batch * groups);
}

at::Tensor EpochPlan::order(std::int64_t epoch) const {
  if (!shuffle)
    return at::arange(dataset_rows, at::kLong);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(
      env::mix_bits(seed + (static_cast<std::uint64_t>(epoch) + 1) * env::kSplitMixStep));
  return at::randperm(dataset_rows, generator, at::kLong);
}

std::int64_t EpochPlan::batch_rows(std::int64_t step, std::int64_t& begin) const {
  const auto round = global_batch * groups;
  const auto left = std::min(round, dataset_rows - step * round);
  begin = step * round + left * group / groups;
  return step * round + left * (group + 1) / groups - begin;
}

at::Tensor EpochPlan::part(const at::Tensor& order, std::int64_t step) const {
  std::int64_t begin = 0;
  const auto rows = batch_rows(step, begin);
  const auto first = rows * rank / replicas;
  return order.narrow(0, begin + first, rows * (rank + 1) / replicas - first);
}

double EpochPlan::weight(std::int64_t step) const {
  std::int64_t begin = 0;
  const auto rows = batch_rows(step, begin);
  const auto mine = rows * (rank + 1) / replicas - rows * rank / replicas;
  return static_cast<double>(mine) * replicas / static_cast<double>(rows);
}

} // namespace troupe::learner
