#pragma once

#include <memory>

#include "collectives/backends/guarded_backend.hpp"
#include "collectives/mesh/control_mesh.hpp"

namespace troupe::collectives {

/// Adds checks to one of LibTorch's backends. Before each collective the ranks agree on its
/// fingerprint over a control mesh, and a failure while data move is reported to all ranks. Work is
/// as asynchronous as the inner backend's, but every call first waits until all ranks have made it.
class CheckedBackend : public GuardedBackend {
public:
  /// `inner` accepts tensors on devices of type `device` and implements the mean.
  CheckedBackend(c10::intrusive_ptr<c10d::Backend> inner, std::shared_ptr<ControlMesh> mesh,
                 c10::DeviceType device);

  const std::string getBackendName() const override { return inner_->getBackendName(); }
  c10::DeviceType device_type() const override { return device_; }
  void poison(const std::string& message) override;

  Work allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  Work reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) override;
  Work broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  Work allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                 const c10d::AllgatherOptions& options) override;
  Work _allgather_base(at::Tensor& output, at::Tensor& input,
                       const c10d::AllgatherOptions& options) override;
  Work gather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
              const c10d::GatherOptions& options) override;
  Work scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
               const c10d::ScatterOptions& options) override;
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                            const c10d::ReduceScatterOptions& options) override;
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                     std::vector<int64_t>& input_splits,
                     const c10d::AllToAllOptions& options) override;
  Work barrier(const c10d::BarrierOptions& options) override;

private:
  /// Returns the inner work that `start` makes. A failure in it is reported to all ranks.
  template <class Start>
  Work checked(const Fingerprint& agreed, Start start);
  /// Starts the inner collective once the ranks agree.
  template <class Start>
  Work start(const Fingerprint& call, std::vector<at::Tensor> result, Start start);

  c10::intrusive_ptr<c10d::Backend> inner_;
  std::shared_ptr<ControlMesh> mesh_;
  c10::DeviceType device_;
};

} // namespace troupe::collectives
