#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "collectives/backends/guarded_backend.hpp"

namespace troupe::collectives {

/// A guarded backend whose calls return at once: a thread of this object makes them in order while
/// the caller computes, so that LibTorch's Reducer sends a bucket of gradients while backward works
/// on the next. Exceptions of a call come from its Work and its Future. The arguments' tensors are
/// kept until the call is complete, and must not be used before. CPU tensors only. One calling
/// thread at a time. At most kMostQueued calls wait; the next blocks.
///
/// The destructor waits for the queued calls: each ends by the inner backend's deadline, and the
/// first failure ends all later ones.
class AsyncBackend : public c10d::Backend {
public:
  static constexpr std::size_t kMostQueued = 1024;

  explicit AsyncBackend(c10::intrusive_ptr<GuardedBackend> inner);
  ~AsyncBackend() override;

  /// Waits until no call is under way: the inner backend is the caller's until the next one.
  void wait_until_idle();

  const std::string getBackendName() const override { return inner_->getBackendName(); }

  using Work = c10::intrusive_ptr<c10d::Work>;
  Work allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  Work allreduce_coalesced(std::vector<at::Tensor>& tensors,
                           const c10d::AllreduceCoalescedOptions& options) override;
  Work reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) override;
  Work broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  Work allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                 const c10d::AllgatherOptions& options) override;
  Work _allgather_base(at::Tensor& output, at::Tensor& input,
                       const c10d::AllgatherOptions& options) override;
  Work allgather_coalesced(std::vector<std::vector<at::Tensor>>& outputs,
                           std::vector<at::Tensor>& inputs,
                           const c10d::AllgatherOptions& options) override;
  Work allgather_into_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                       std::vector<at::Tensor>& inputs,
                                       const c10d::AllgatherOptions& options) override;
  Work gather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
              const c10d::GatherOptions& options) override;
  Work scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
               const c10d::ScatterOptions& options) override;
  Work reduce_scatter(std::vector<at::Tensor>& outputs,
                      std::vector<std::vector<at::Tensor>>& inputs,
                      const c10d::ReduceScatterOptions& options) override;
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                            const c10d::ReduceScatterOptions& options) override;
  Work reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                       std::vector<at::Tensor>& inputs,
                                       const c10d::ReduceScatterOptions& options) override;
  Work alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                const c10d::AllToAllOptions& options) override;
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                     std::vector<int64_t>& input_splits,
                     const c10d::AllToAllOptions& options) override;
  Work barrier(const c10d::BarrierOptions& options) override;

private:
  struct Queue;

  /// `call` runs on the thread and returns the inner work; `result` is the future's value.
  template <class Call>
  Work submit(std::vector<at::Tensor> result, Call call);

  c10::intrusive_ptr<GuardedBackend> inner_;
  std::shared_ptr<Queue> queue_; // outlives this if its thread drops the last reference to this
  std::jthread thread_;
};

} // namespace troupe::collectives
