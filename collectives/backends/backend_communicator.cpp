#include "collectives/backends/backend_communicator.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace troupe::collectives {

BackendCommunicator::BackendCommunicator(c10::intrusive_ptr<GuardedBackend> backend,
                                         at::Device device)
    : backend_(std::move(backend)), device_(device) {}

BackendCommunicator::~BackendCommunicator() = default;

int BackendCommunicator::rank() const {
  return backend_->getRank();
}
int BackendCommunicator::size() const {
  return backend_->getSize();
}
std::string BackendCommunicator::backend() const {
  return backend_->getBackendName();
}

GuardedBackend& BackendCommunicator::idle() {
  if (async_)
    async_->wait_until_idle();
  return *backend_;
}

void BackendCommunicator::refuse(const std::string& what) {
  const auto message = "rank " + std::to_string(rank()) + ": " + what;
  backend_->poison(message);
  throw CollectiveError(message);
}

void BackendCommunicator::all_reduce(at::Tensor& tensor, ReduceOp op) {
  if (op == ReduceOp::first)
    return broadcast(tensor, 0);
  const at::NoGradGuard guard;
  c10d::AllreduceOptions options;
  options.reduceOp = to_c10d(op);
  const auto flat = tensor.contiguous();
  std::vector<at::Tensor> tensors{flat};
  idle().allreduce(tensors, options)->wait();
  if (!flat.is_same(tensor))
    tensor.copy_(flat);
}

std::vector<at::Tensor> BackendCommunicator::all_gather(const at::Tensor& tensor) {
  const at::NoGradGuard guard;
  auto sizes = tensor.sizes().vec();
  sizes.insert(sizes.begin(), size());
  auto output = at::empty(sizes, tensor.options().requires_grad(false));
  auto input = tensor.detach().contiguous();
  idle()._allgather_base(output, input)->wait();
  return output.unbind(0);
}

void BackendCommunicator::broadcast(at::Tensor& tensor, int root) {
  const at::NoGradGuard guard;
  c10d::BroadcastOptions options;
  options.rootRank = root;
  const auto flat = tensor.contiguous();
  std::vector<at::Tensor> tensors{flat};
  idle().broadcast(tensors, options)->wait();
  if (!flat.is_same(tensor))
    tensor.copy_(flat);
}

at::Tensor BackendCommunicator::reduce_scatter(const at::Tensor& tensor, ReduceOp op) {
  const at::NoGradGuard guard;
  if (tensor.dim() == 0 || tensor.size(0) % size() != 0)
    refuse("reduce_scatter of " + describe(fingerprint_of(Kind::reduce_scatter, tensor), false)
           + ": the first dimension must be divisible by the number of ranks, "
           + std::to_string(size()));
  auto sizes = tensor.sizes().vec();
  sizes[0] /= size();
  auto output = at::empty(sizes, tensor.options().requires_grad(false));
  auto input = tensor.detach().contiguous();
  c10d::ReduceScatterOptions options;
  options.reduceOp = to_c10d(op);
  idle()._reduce_scatter_base(output, input, options)->wait();
  return output;
}

std::vector<at::Tensor> BackendCommunicator::all_to_all(const std::vector<at::Tensor>& out) {
  const at::NoGradGuard guard;
  if (out.size() != static_cast<std::size_t>(size()))
    refuse("all_to_all of " + std::to_string(out.size()) + " tensors; give one per rank, "
           + std::to_string(size()));
  std::vector<at::Tensor> rows;
  for (const auto& tensor : out) {
    if (tensor.sizes() != out[0].sizes() || tensor.scalar_type() != out[0].scalar_type())
      refuse("all_to_all of tensors that differ in shape or type; make them equal");
    rows.push_back(tensor.detach().unsqueeze(0));
  }
  auto input = at::cat(rows).contiguous();
  auto output = at::empty_like(input);
  std::vector<int64_t> equal, splits;
  idle().alltoall_base(output, input, equal, splits)->wait();
  return output.unbind(0);
}

void BackendCommunicator::barrier() {
  idle().barrier()->wait();
}

void BackendCommunicator::abort(const std::string& reason) {
  backend_->poison("rank " + std::to_string(rank()) + " aborted: " + reason);
}

c10::intrusive_ptr<c10d::ProcessGroup> BackendCommunicator::process_group() {
  if (!group_) {
    group_ = c10::make_intrusive<c10d::ProcessGroup>(c10::make_intrusive<c10d::HashStore>(), rank(),
                                                     size());
    c10::intrusive_ptr<c10d::Backend> served = backend_;
    if (device_.is_cpu())
      served = async_ = c10::make_intrusive<AsyncBackend>(backend_);
    group_->setBackend(device_.type(), c10d::ProcessGroup::CUSTOM, served);
    group_->setDefaultBackend(c10d::ProcessGroup::CUSTOM);
    group_->setGroupName(backend());
  }
  return group_;
}

} // namespace troupe::collectives
