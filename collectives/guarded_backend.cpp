#include "collectives/guarded_backend.hpp"

#include <ATen/core/ivalue.h>

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
  }
  throw std::invalid_argument("collectives: unknown reduction");
}

ReduceOp GuardedBackend::operation(const c10d::ReduceOp& op) {
  switch (op.op_) {
  case c10d::ReduceOp::SUM:
    return ReduceOp::sum;
  case c10d::ReduceOp::AVG:
    return ReduceOp::mean;
  case c10d::ReduceOp::MIN:
    return ReduceOp::min;
  case c10d::ReduceOp::MAX:
    return ReduceOp::max;
  case c10d::ReduceOp::PRODUCT:
    return ReduceOp::product;
  default:
    throw CollectiveError("collectives: reduction " + std::to_string(op.op_)
                          + " is not one of sum, mean, min, max, product");
  }
}

void GuardedBackend::refuse(Kind kind, const std::string& rule) {
  Fingerprint fingerprint;
  fingerprint.kind = kind;
  const auto message = "rank " + std::to_string(getRank()) + " called "
                       + describe(fingerprint, true) + " wrongly: " + rule;
  poison(message);
  throw CollectiveError(message);
}

at::Tensor& GuardedBackend::only(std::vector<at::Tensor>& tensors, Kind kind) {
  if (tensors.size() != 1)
    refuse(kind, std::to_string(tensors.size()) + " tensors; one per call is taken");
  auto& tensor = tensors.front();
  if (!tensor.defined() || tensor.layout() != at::kStrided)
    refuse(kind, "the tensor is undefined or sparse; give a dense one");
  if (tensor.device().type() != device_type())
    refuse(kind, "the tensor is on " + tensor.device().str() + ", the backend \"" + getBackendName()
                     + "\" takes tensors on " + c10::DeviceTypeName(device_type(), true));
  return tensor;
}

} // namespace troupe::collectives
