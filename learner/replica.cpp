#include "learner/replica.hpp"

#include <torch/optim/optimizer.h>

#include <ATen/ops/cat.h>

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
    : communicator_(communicator), seed_(seed), device_(device) {}

int ReplicaContext::replica_id() const {
  return communicator_ ? communicator_->rank() : 0;
}

int ReplicaContext::num_replicas_in_sync() const {
  return communicator_ ? communicator_->size() : 1;
}

void ReplicaContext::all_reduce(at::Tensor& tensor, collectives::ReduceOp op) {
  if (communicator_)
    communicator_->all_reduce(tensor, op);
}

void ReplicaContext::all_reduce(TensorMap& tensors, collectives::ReduceOp op) {
  if (!communicator_)
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
    communicator_->all_reduce(flat, op);
    std::int64_t begin = 0;
    for (auto* tensor : members) {
      tensor->copy_(flat.narrow(0, begin, tensor->numel()).view(tensor->sizes()));
      begin += tensor->numel();
    }
  }
}

std::vector<at::Tensor> ReplicaContext::all_gather(const at::Tensor& tensor) {
  return communicator_ ? communicator_->all_gather(tensor)
                       : std::vector<at::Tensor>{tensor.detach().clone()};
}

void ReplicaContext::broadcast(at::Tensor& tensor, int root) {
  if (communicator_)
    communicator_->broadcast(tensor, root);
  else if (root != 0)
    throw std::invalid_argument("broadcast: root " + std::to_string(root)
                                + " is not a replica; there is one, replica 0");
}

std::vector<at::Tensor> ReplicaContext::all_to_all(const std::vector<at::Tensor>& out) {
  if (communicator_)
    return communicator_->all_to_all(out);
  if (out.size() != 1)
    throw std::invalid_argument("all_to_all of " + std::to_string(out.size())
                                + " tensors; give one per replica, 1");
  return {out[0].detach().clone()};
}

void ReplicaContext::barrier() {
  if (communicator_)
    communicator_->barrier();
}

std::unique_ptr<WrappedOptimizer>
ReplicaContext::wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer) {
  return std::make_unique<WrappedOptimizer>(std::move(optimizer), communicator_);
}

} // namespace troupe::learner
