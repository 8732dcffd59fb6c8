#include "collectives/backends/guarded_backend.hpp"

#include <ATen/core/ivalue.h>

#include "collectives/backends/reduce.hpp"

namespace troupe::collectives {
namespace {

class DoneWork : public c10d::Work {
public:
  explicit DoneWork(std::vector<at::Tensor> result) : result_(std::move(result)) {
    future_ =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    future_->markCompleted(c10::IValue(result_));
    finish();
  }
  std::vector<at::Tensor> result() override { return result_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

private:
  std::vector<at::Tensor> result_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

} // namespace

c10::intrusive_ptr<c10d::Work> done_work(std::vector<at::Tensor> result) {
  return c10::make_intrusive<DoneWork>(std::move(result));
}

c10d::ReduceOp to_c10d(ReduceOp op) {
  switch (op) {
  case ReduceOp::sum:
    return c10d::ReduceOp::SUM;
  case ReduceOp::mean:
    return c10d::ReduceOp::AVG;
  case ReduceOp::min:
    return c10d::ReduceOp::MIN;
  case ReduceOp::max:
    return c10d::ReduceOp::MAX;
  case ReduceOp::product:
    return c10d::ReduceOp::PRODUCT;
  case ReduceOp::first:
    break;
  }
  return c10d::ReduceOp::UNUSED;
}

GuardedBackend::Work
GuardedBackend::allreduce_coalesced(std::vector<at::Tensor>& tensors,
                                    const c10d::AllreduceCoalescedOptions& options) {
  for (auto& tensor : tensors) {
    std::vector<at::Tensor> one{tensor};
    allreduce(one, options)->wait();
  }
  return done_work(tensors);
}

/// c10d's layout: outputs[rank][i] is what `rank` passed as inputs[i].
GuardedBackend::Work
GuardedBackend::allgather_coalesced(std::vector<std::vector<at::Tensor>>& outputs,
                                    std::vector<at::Tensor>& inputs,
                                    const c10d::AllgatherOptions& options) {
  std::vector<at::Tensor> all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::vector<at::Tensor> one{inputs[i]};
    std::vector<std::vector<at::Tensor>> to(1);
    for (auto& of_rank : outputs) {
      if (of_rank.size() != inputs.size())
        refuse(Kind::all_gather, "every rank's list must have the length of the inputs, "
                                     + std::to_string(inputs.size()));
      to[0].push_back(of_rank[i]);
    }
    allgather(to, one, options)->wait();
    all.insert(all.end(), to[0].begin(), to[0].end());
  }
  return done_work(std::move(all));
}

GuardedBackend::Work
GuardedBackend::allgather_into_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                                std::vector<at::Tensor>& inputs,
                                                const c10d::AllgatherOptions& options) {
  if (outputs.size() != inputs.size())
    refuse(Kind::all_gather, "it takes one output per input");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    _allgather_base(outputs[i], inputs[i], options)->wait();
  return done_work(outputs);
}

GuardedBackend::Work
GuardedBackend::reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                                std::vector<at::Tensor>& inputs,
                                                const c10d::ReduceScatterOptions& options) {
  if (outputs.size() != inputs.size())
    refuse(Kind::reduce_scatter, "it takes one output per input");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    _reduce_scatter_base(outputs[i], inputs[i], options)->wait();
  return done_work(outputs);
}

void GuardedBackend::refuse(Kind kind, const std::string& rule) {
  Fingerprint fingerprint;
  fingerprint.kind = kind;
  const auto message = "rank " + std::to_string(getRank()) + " called "
                       + describe(fingerprint, true) + " wrongly: " + rule;
  poison(message);
  throw CollectiveError(message);
}

int GuardedBackend::root_of(std::int64_t root, Kind kind) {
  if (root < 0 || root >= getSize())
    refuse(kind, "root " + std::to_string(root) + " is not a rank; there are "
                     + std::to_string(getSize()));
  return static_cast<int>(root);
}

ReduceOp GuardedBackend::operation(const c10d::ReduceOp& op, const at::Tensor& tensor, Kind kind) {
  for (const auto known :
       {ReduceOp::sum, ReduceOp::mean, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
    if (to_c10d(known).op_ != op.op_)
      continue;
    if (!can_reduce(tensor.scalar_type(), known))
      refuse(kind, std::string(op_name(known)) + " of " + type_name(tensor.scalar_type())
                       + " is not defined; convert it to a floating-point type");
    return known;
  }
  refuse(kind,
         "reduction " + std::to_string(op.op_) + " is not one of sum, mean, min, max and product");
}

at::Tensor& GuardedBackend::only(std::vector<at::Tensor>& tensors, Kind kind) {
  if (tensors.size() != 1)
    refuse(kind, std::to_string(tensors.size()) + " tensors; each call takes one");
  auto& tensor = tensors.front();
  if (!tensor.defined() || tensor.layout() != at::kStrided)
    refuse(kind, "the tensor is undefined or sparse; give a dense one");
  if (tensor.device().type() != device_type())
    refuse(kind, "the tensor is on " + tensor.device().str() + ", but the backend \""
                     + getBackendName() + "\" takes tensors on "
                     + c10::DeviceTypeName(device_type(), true));
  return tensor;
}

} // namespace troupe::collectives
