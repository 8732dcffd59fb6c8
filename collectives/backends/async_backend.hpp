#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "collectives/backends/guarded_backend.hpp"

namespace troupe::collectives {

/// Makes the calls of a guarded backend asynchronous. A thread of this object executes them in
/// order while the caller computes, so LibTorch's Reducer can send one bucket of gradients while
/// backward works on the next. An exception in a call is rethrown by its Work and its Future. The
/// argument tensors are kept alive until the call is complete and must not be used before
/// then. CPU tensors only. At most one thread may call it at a time. Up to kMostQueued calls are
/// queued; the next one blocks.
///
/// The destructor waits for the queued calls. Each of them ends by the inner backend's deadline,
/// and the first failure ends all later ones.
class AsyncBackend : public c10d::Backend {
public:
  static constexpr std::size_t kMostQueued = 1024;

  explicit AsyncBackend(c10::intrusive_ptr<GuardedBackend> inner);
  ~AsyncBackend() override;

  /// Waits until no call is in progress. The caller may then use the inner backend directly until
  /// it makes the next call here.
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

  /// Queues a call of the inner backend, with copies of the arguments. `result` becomes the value
  /// of the future.
  template <class Call, class... Arguments>
  Work submit(std::vector<at::Tensor> result, Call call, const Arguments&... arguments);

  c10::intrusive_ptr<GuardedBackend> inner_;
  std::shared_ptr<Queue> queue_; // shared with the thread, which may outlive this object
  std::jthread thread_;
};

} // namespace troupe::collectives
