#include "learner/elastic_program.hpp"

#include <stdexcept>

#include <ATen/ops/full.h>

#include "learner/tensor_map_broadcast.hpp"

namespace troupe::learner {
namespace {

/// Into the tensors that are there, where they fit.
void copy_into(TensorMap& copies, const TensorMap& live) {
  const at::NoGradGuard guard;
  std::erase_if(copies, [&](const auto& item) { return !live.contains(item.first); });
  for (const auto& [name, tensor] : live) {
    auto& copy = copies[name];
    if (copy.defined() && copy.sizes() == tensor.sizes()
        && copy.scalar_type() == tensor.scalar_type())
      copy.copy_(tensor);
    else
      copy = tensor.detach().clone();
  }
}

/// The random streams in a replica's state.
TensorMap own_streams(const TensorMap& state) {
  TensorMap own;
  for (const auto& [name, tensor] : state)
    if (name.starts_with("random."))
      own[name] = tensor.clone();
  return own;
}

} // namespace

ElasticProgram::ElasticProgram(collectives::ElasticGroup& group, ReplicaFactory factory,
                               const ElasticOptions& options)
    : group_(group), factory_(std::move(factory)), options_(options) {
  if (options_.copy_every < 1)
    throw std::invalid_argument("elastic program: copy_every " + std::to_string(options_.copy_every)
                                + " must be at least 1");
  prepare_compute_thread(options_.threads);
}

ElasticProgram::~ElasticProgram() = default;

void ElasticProgram::tear_down() {
  input_ = nullptr;
  replica_.reset();
  context_.reset();
}

void ElasticProgram::take_copy() {
  copy_into(copy_.parameters, replica_->parameters());
  copy_into(copy_.optimizer_state, replica_->optimizer_state());
  copy_.steps = steps_;
}

void ElasticProgram::build() {
  auto& communicator = group_.communicator();
  context_ = std::make_unique<ReplicaContext>(
      ReplicaSeat{.replica_id = communicator.rank(),
                  .num_replicas = communicator.size(),
                  .communicator = &communicator,
                  .update_rule = options_.rules ? options_.rules(communicator) : nullptr,
                  .devices = {options_.device}},
      replica_seed(options_.seed, group_.member()));
  replica_ = factory_();
  if (!replica_)
    throw std::invalid_argument("elastic program: the factory made no replica");
  replica_->build(*context_);
  const int root = collectives::most_advanced_rank(communicator, copy_.steps);
  auto steps =
      broadcast_tensor_map(*context_, {{"steps", at::full({1}, copy_.steps, at::kLong)}}, root);
  steps_ = std::max<std::int64_t>(0, steps.at("steps").item<std::int64_t>());
  const auto parameters = broadcast_tensor_map(*context_, copy_.parameters, root);
  const auto own =
      own_streams(copy_.steps >= 0 ? copy_.optimizer_state : replica_->optimizer_state());
  auto optimizer_state = broadcast_tensor_map(*context_, copy_.optimizer_state, root);
  for (const auto& [name, tensor] : own)
    optimizer_state[name] = tensor;
  if (steps_ > 0)
    replica_->load(parameters, optimizer_state);
  take_copy();
  input_ = replica_->input_fn({.num_replicas_in_sync = communicator.size(),
                               .input_pipeline_id = communicator.rank(),
                               .num_input_pipelines = communicator.size(),
                               .first_step = steps_});
}

Metrics ElasticProgram::run(std::int64_t steps) {
  Metrics metrics;
  std::string lost;
  while (!replica_ || steps_ < steps) {
    try {
      if (!lost.empty()) {
        const auto reason = std::exchange(lost, {});
        tear_down();
        const auto membership = group_.regroup(reason);
        build();
        changes_.push_back({.step = steps_, .membership = membership, .reason = reason});
        continue;
      }
      if (!replica_) {
        build();
        continue;
      }
      if (steps_ - copy_.steps >= options_.copy_every)
        take_copy();
      if (const auto grown = group_.admit_newcomers()) {
        take_copy();
        tear_down();
        build();
        changes_.push_back({.step = steps_, .membership = *grown, .reason = "newcomers"});
        continue;
      }
      const auto batch = input_();
      if (batch.empty())
        break;
      metrics = replica_->step_fn(*context_, batch);
      ++steps_;
    } catch (const collectives::LeftOut&) {
      tear_down();
      throw;
    } catch (const collectives::CollectiveError& error) {
      lost = error.what();
    }
  }
  return metrics;
}

} // namespace troupe::learner
