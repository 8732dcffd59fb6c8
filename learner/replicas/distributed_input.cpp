#include "learner/replicas/distributed_input.hpp"

#include <algorithm>
#include <stdexcept>

#include <ATen/ops/full.h>

#include "learner/replicas/strategy.hpp"
#include "learner/replicas/tensor_map_broadcast.hpp"

namespace troupe::learner {
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
  if (options_.first_step < 0)
    throw std::invalid_argument("input: first_step " + std::to_string(options_.first_step)
                                + " must be at least 0");
}

InputContext DistributedInput::context_of(const ReplicaContext& context) const {
  InputContext told{.num_replicas_in_sync = context.num_replicas_in_sync(),
                    .first_step = options_.first_step};
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
  if (local_replicas_ > 1 && context.num_replicas_in_sync() < context.num_replicas())
    throw std::invalid_argument("input: a pipeline per process is split over its replicas, which "
                                "must all step together; use one per replica with this strategy");
  const auto me = static_cast<std::size_t>(context.local_id());
  std::unique_lock lock(mutex_);
  const auto round = batches_[me];
  const auto may_draw = [&] {
    return round - first_round_ < static_cast<std::int64_t>(options_.ahead);
  };
  if (!taken_.wait_for(lock, options_.timeout, may_draw))
    throw std::runtime_error(
        "input: replica " + std::to_string(context.replica_id()) + " is "
        + std::to_string(options_.ahead)
        + " batches ahead of another replica of its process, which took none for "
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
  auto batch = context.rank_in_sync_group() == 0 ? draw(context) : TensorMap{};
  if (size == 1)
    return batch;
  batch = broadcast_tensor_map(context, batch, 0);
  if (batch.empty())
    return {};
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
