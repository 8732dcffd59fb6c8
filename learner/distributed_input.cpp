#include "learner/distributed_input.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "learner/strategy.hpp"

namespace troupe::learner {
namespace {

/// What the others must know to receive a batch: a line "name type dimensions…" per tensor.
std::string header_of(const TensorMap& batch) {
  std::string text;
  for (const auto& [name, tensor] : batch) {
    text += std::to_string(name.size()) + ' ' + name + ' '
            + std::to_string(static_cast<int>(tensor.scalar_type())) + ' '
            + std::to_string(tensor.dim());
    for (const auto size : tensor.sizes())
      text += ' ' + std::to_string(size);
    text += '\n';
  }
  return text;
}

/// Reads header_of() of the program's own first replica.
TensorMap empty_batch(const std::string& header) {
  TensorMap batch;
  std::size_t at = 0;
  const auto number = [&] {
    std::size_t used = 0;
    const auto value = std::stoll(header.substr(at), &used);
    at += used + 1;
    return value;
  };
  while (at < header.size()) {
    const auto length = static_cast<std::size_t>(number());
    const auto name = header.substr(at, length);
    at += length + 1;
    const auto type = static_cast<c10::ScalarType>(number());
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(number()));
    for (auto& size : sizes)
      size = number();
    batch[name] = at::empty(sizes, type);
  }
  return batch;
}

} // namespace

DistributedInput::DistributedInput(Make make, const Strategy& strategy,
                                   const DistributedInputOptions& options)
    : make_(std::move(make)),
      options_(options),
      local_replicas_(strategy.num_local_replicas()),
      worker_(strategy.worker()),
      workers_(strategy.num_workers()),
      inputs_(static_cast<std::size_t>(local_replicas_)),
      batches_(inputs_.size()) {
  if (!make_)
    throw std::invalid_argument("input: there is no input_fn");
  if (options_.ahead < 1)
    throw std::invalid_argument("input: ahead 0 must be at least 1");
}

InputContext DistributedInput::context_of(const ReplicaContext& context) const {
  InputContext told{.num_replicas_in_sync = context.num_replicas_in_sync()};
  switch (options_.pipelines) {
  case Pipelines::per_replica:
    told.input_pipeline_id = context.replica_id();
    told.num_input_pipelines = context.num_replicas();
    break;
  case Pipelines::per_worker:
    told.input_pipeline_id = worker_;
    told.num_input_pipelines = workers_;
    break;
  case Pipelines::single:
    break;
  }
  return told;
}

TensorMap DistributedInput::draw(ReplicaContext& context) {
  auto& input = inputs_[options_.pipelines == Pipelines::per_replica
                            ? static_cast<std::size_t>(context.local_id())
                            : 0];
  if (!input)
    input = make_(context_of(context), context);
  return input();
}

TensorMap DistributedInput::next_of_worker(ReplicaContext& context) {
  const auto me = static_cast<std::size_t>(context.local_id());
  std::unique_lock lock(mutex_);
  const auto round = batches_[me];
  const auto may_draw = [&] {
    return round - first_round_ < static_cast<std::int64_t>(options_.ahead);
  };
  if (!taken_.wait_for(lock, options_.timeout, may_draw))
    throw std::runtime_error("input: replica " + std::to_string(context.replica_id()) + " is "
                             + std::to_string(options_.ahead)
                             + " batches ahead of another of its process, which took none for "
                             + std::to_string(options_.timeout.count())
                             + " ms; do all replicas call next() equally often?");
  while (!ended_ && round >= first_round_ + static_cast<std::int64_t>(rounds_.size())) {
    auto batch = draw(context);
    if (batch.empty())
      ended_ = true;
    else
      rounds_.push_back(std::move(batch));
  }
  if (round >= first_round_ + static_cast<std::int64_t>(rounds_.size()))
    return {};
  auto mine = part_of_batch(rounds_[static_cast<std::size_t>(round - first_round_)],
                            context.local_id(), local_replicas_);
  ++batches_[me];
  while (!rounds_.empty() && *std::min_element(batches_.begin(), batches_.end()) > first_round_) {
    rounds_.pop_front();
    ++first_round_;
    taken_.notify_all();
  }
  return mine;
}

TensorMap DistributedInput::next_of_program(ReplicaContext& context) {
  const int size = context.num_replicas_in_sync();
  if (size != context.num_replicas() || !context.has_collectives())
    throw std::invalid_argument("input: a single pipeline needs replicas that step together; use "
                                "one per replica with this strategy");
  const bool first = context.rank_in_sync_group() == 0;
  TensorMap batch = first ? draw(context) : TensorMap{};
  if (size == 1)
    return batch;
  auto header = header_of(batch);
  auto length = at::full({1}, static_cast<std::int64_t>(header.size()), at::kLong);
  context.broadcast_(length);
  if (length.item<std::int64_t>() == 0)
    return {};
  auto bytes = at::empty({length.item<std::int64_t>()}, at::kByte);
  if (first)
    std::memcpy(bytes.mutable_data_ptr(), header.data(), header.size());
  context.broadcast_(bytes);
  if (!first)
    batch = empty_batch({static_cast<const char*>(bytes.const_data_ptr()),
                         static_cast<std::size_t>(bytes.numel())});
  for (auto& [name, tensor] : batch) {
    tensor = tensor.contiguous();
    context.broadcast_(tensor);
  }
  return part_of_batch(batch, context.rank_in_sync_group(), size);
}

bool DistributedInput::all_have(ReplicaContext& context, bool mine) const {
  auto flag = at::full({1}, mine ? 1 : 0, at::TensorOptions(at::kLong).device(context.device()));
  context.all_reduce_(flag, ReduceOp::min);
  return flag.item<std::int64_t>() == 1;
}

TensorMap DistributedInput::next(ReplicaContext& context) {
  const collectives::Timeline::Span span(context.timeline(), "input");
  TensorMap batch;
  switch (options_.pipelines) {
  case Pipelines::per_replica:
    batch = draw(context);
    break;
  case Pipelines::per_worker:
    batch = next_of_worker(context);
    break;
  case Pipelines::single:
    batch = next_of_program(context);
    break;
  }
  if (options_.finite && context.has_collectives())
    return all_have(context, !batch.empty()) ? batch : TensorMap{};
  if (batch.empty() && !options_.finite)
    throw std::runtime_error("the input of replica " + std::to_string(context.replica_id())
                             + " ended; set `finite` where inputs end");
  return batch;
}

} // namespace troupe::learner
