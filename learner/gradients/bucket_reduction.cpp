#include "learner/gradients/bucket_reduction.hpp"

#include <stdexcept>
#include <string>

#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "collectives/communicator.hpp"
#include "learner/gradients/compression.hpp"

namespace troupe::learner {

PendingCollective::PendingCollective(collectives::Communicator& communicator)
    : communicator_(communicator) {}

void PendingCollective::follow(c10::intrusive_ptr<c10d::Work> work,
                               const std::function<void()>& on_arrival) {
  work_ = std::move(work);
  if (!on_arrival)
    return;
  c10::intrusive_ptr<c10::ivalue::Future> future;
  try {
    future = work_->getFuture();
  } catch (const std::exception&) { // the backend has no futures
  }
  if (future)
    future->addCallback([on_arrival](c10::ivalue::Future&) { on_arrival(); });
  else
    at_wait_ = on_arrival;
}

void PendingCollective::all_reduce(at::Tensor& tensor, collectives::ReduceOp op, bool now,
                                   const std::function<void()>& on_arrival) {
  if (now) {
    communicator_.all_reduce(tensor, op);
    if (on_arrival)
      on_arrival();
    return;
  }
  std::vector<at::Tensor> tensors{tensor};
  c10d::AllreduceOptions options;
  options.reduceOp = op == collectives::ReduceOp::sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::AVG;
  follow(communicator_.process_group()->allreduce(tensors, options), on_arrival);
}

at::Tensor PendingCollective::all_gather(at::Tensor& tensor,
                                         const std::function<void()>& on_arrival) {
  auto output = at::empty({communicator_.size(), tensor.numel()}, tensor.options());
  follow(communicator_.process_group()->_allgather_base(output, tensor), on_arrival);
  return output;
}

void PendingCollective::wait() {
  if (!work_)
    return;
  const auto work = std::exchange(work_, nullptr);
  work->wait();
  if (at_wait_)
    std::exchange(at_wait_, nullptr)();
}

namespace {

class PlainReduction : public BucketReduction {
public:
  PlainReduction(BucketMemory memory, collectives::Communicator& communicator,
                 collectives::ReduceOp op)
      : memory_(std::move(memory)), call_(communicator), op_(op) {}
  void start(bool now) override { call_.all_reduce(memory_.flat, op_, now, on_arrival_); }
  void finish() override { call_.wait(); }

private:
  BucketMemory memory_;
  PendingCollective call_;
  collectives::ReduceOp op_;
};

/// Every replica receives all gradients and computes the same sums. Each replica receives (replicas
/// - 1) times the bytes of its gradients.
class AdasumReduction : public BucketReduction {
public:
  AdasumReduction(BucketMemory memory, collectives::Communicator& communicator)
      : memory_(std::move(memory)), call_(communicator) {}
  void start(bool) override { rows_ = call_.all_gather(memory_.flat, on_arrival_); }
  void finish() override {
    call_.wait();
    std::int64_t begin = 0;
    for (const auto& view : memory_.views) {
      const auto count = view.numel();
      memory_.data.narrow(0, begin, count).copy_(adaptive_sum(rows_.narrow(1, begin, count)));
      begin += count;
    }
    memory_.tail.copy_(rows_.narrow(1, begin, memory_.tail.numel()).sum(0));
    rows_.reset();
  }

private:
  BucketMemory memory_;
  PendingCollective call_;
  at::Tensor rows_; // [replicas, elements and tail]
};

at::Tensor add_pair(const at::Tensor& a, const at::Tensor& b) {
  const double ab = (a * b).sum().item<double>();
  const double aa = (a * a).sum().item<double>();
  const double bb = (b * b).sum().item<double>();
  return a * (aa > 0 ? 1 - ab / (2 * aa) : 1) + b * (bb > 0 ? 1 - ab / (2 * bb) : 1);
}

} // namespace

at::Tensor adaptive_sum(const at::Tensor& rows) {
  auto parts = rows.to(at::kDouble).unbind(0);
  std::size_t power = 1;
  while (2 * power <= parts.size())
    power *= 2;
  for (std::size_t i = power; i < parts.size(); ++i)
    parts[i - power] = add_pair(parts[i - power], parts[i]);
  for (std::size_t apart = 1; apart < power; apart *= 2)
    for (std::size_t i = 0; i < power; i += 2 * apart)
      parts[i] = add_pair(parts[i], parts[i + apart]);
  return parts[0].to(rows.scalar_type());
}

void check_compression(const CompressionOptions& options, GradientOperation operation) {
  const auto refuse = [](const std::string& message) { throw std::invalid_argument(message); };
  if (options.kind == CompressionKind::none)
    return;
  if (operation == GradientOperation::adasum)
    refuse("compression with operation adasum: adaptive summation needs the whole gradients; "
           "choose one of the two");
  if (options.rank < 1)
    refuse("compression.rank " + std::to_string(options.rank) + " must be at least 1");
  if (options.min_elements < 0)
    refuse("compression.min_elements " + std::to_string(options.min_elements)
           + " must not be negative");
  if (!(options.fraction > 0 && options.fraction <= 1))
    refuse("compression.fraction " + std::to_string(options.fraction)
           + " must be above 0 and at most 1, all elements");
}

std::unique_ptr<BucketReduction> make_bucket_reduction(BucketMemory memory,
                                                       collectives::Communicator& communicator,
                                                       GradientOperation operation,
                                                       const CompressionOptions& compression) {
  if (operation == GradientOperation::adasum)
    return std::make_unique<AdasumReduction>(std::move(memory), communicator);
  const auto op = operation == GradientOperation::sum ? collectives::ReduceOp::sum
                                                      : collectives::ReduceOp::mean;
  const auto type = memory.flat.scalar_type();
  if (compression.kind != CompressionKind::none && (type == at::kFloat || type == at::kDouble))
    return make_compressed_reduction(std::move(memory), communicator, op, compression);
  return std::make_unique<PlainReduction>(std::move(memory), communicator, op);
}

} // namespace troupe::learner
