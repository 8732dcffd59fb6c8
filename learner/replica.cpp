#include "learner/replica.hpp"

#include <torch/optim/optimizer.h>

#include <ATen/ops/cat.h>

#include "learner/update_rule.hpp"
#include "learner/wrapped_optimizer.hpp"

namespace troupe::learner {

std::int64_t InputContext::per_replica_batch_size(std::int64_t global_batch_size) const {
  if (num_replicas_in_sync < 1 || global_batch_size < 1
      || global_batch_size % num_replicas_in_sync != 0)
    throw std::invalid_argument("the global batch size " + std::to_string(global_batch_size)
                                + " does not divide over " + std::to_string(num_replicas_in_sync)
                                + " replicas; make it a multiple of the number of replicas");
  return global_batch_size / num_replicas_in_sync;
}

ReplicaContext::ReplicaContext(collectives::Communicator* communicator, std::uint64_t seed,
                               at::Device device)
    : ReplicaContext(ReplicaSeat{.replica_id = communicator ? communicator->rank() : 0,
                                 .num_replicas = communicator ? communicator->size() : 1,
                                 .communicator = communicator},
                     seed, device) {}

ReplicaContext::ReplicaContext(ReplicaSeat seat, std::uint64_t seed, at::Device device)
    : seat_(std::move(seat)), seed_(seed), device_(device) {}

int ReplicaContext::num_replicas_in_sync() const {
  return seat_.communicator ? seat_.communicator->size() : 1;
}

void ReplicaContext::all_reduce(at::Tensor& tensor, collectives::ReduceOp op) {
  if (seat_.communicator)
    seat_.communicator->all_reduce(tensor, op);
}

void ReplicaContext::all_reduce(TensorMap& tensors, collectives::ReduceOp op) {
  if (!seat_.communicator)
    return;
  const at::NoGradGuard guard;
  std::map<at::ScalarType, std::vector<at::Tensor*>> types;
  for (auto& [name, tensor] : tensors)
    types[tensor.scalar_type()].push_back(&tensor);
  for (auto& [type, members] : types) {
    std::vector<at::Tensor> rows;
    for (const auto* tensor : members)
      rows.push_back(tensor->detach().reshape({-1}));
    auto flat = at::cat(rows);
    seat_.communicator->all_reduce(flat, op);
    std::int64_t begin = 0;
    for (auto* tensor : members) {
      tensor->copy_(flat.narrow(0, begin, tensor->numel()).view(tensor->sizes()));
      begin += tensor->numel();
    }
  }
}

std::vector<at::Tensor> ReplicaContext::all_gather(const at::Tensor& tensor) {
  return seat_.communicator ? seat_.communicator->all_gather(tensor)
                            : std::vector<at::Tensor>{tensor.detach().clone()};
}

void ReplicaContext::broadcast(at::Tensor& tensor, int root) {
  if (seat_.communicator)
    seat_.communicator->broadcast(tensor, root);
  else if (root != 0)
    throw std::invalid_argument("broadcast: root " + std::to_string(root)
                                + " is not a replica; there is one, replica 0");
}

std::vector<at::Tensor> ReplicaContext::all_to_all(const std::vector<at::Tensor>& out) {
  if (seat_.communicator)
    return seat_.communicator->all_to_all(out);
  if (out.size() != 1)
    throw std::invalid_argument("all_to_all of " + std::to_string(out.size())
                                + " tensors; give one per replica, 1");
  return {out[0].detach().clone()};
}

void ReplicaContext::barrier() {
  if (seat_.communicator)
    seat_.communicator->barrier();
}

std::unique_ptr<WrappedOptimizer>
ReplicaContext::wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer) {
  return wrap_optimizer(std::move(optimizer), WrappedOptimizerOptions{});
}

std::unique_ptr<WrappedOptimizer>
ReplicaContext::wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                               const WrappedOptimizerOptions& options) {
  const int number = optimizers_++;
  return std::make_unique<WrappedOptimizer>(std::move(optimizer), seat_.communicator, options,
                                            seat_.update_rule ? seat_.update_rule(number)
                                                              : nullptr);
}

} // namespace troupe::learner
