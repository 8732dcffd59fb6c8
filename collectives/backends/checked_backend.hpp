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
  struct Options {
    std::string name; // "nccl"
    c10::DeviceType device = at::kCPU;
    bool averages = false;      // the inner backend implements the mean itself
    bool inner_barrier = false; // use the inner barrier, which also orders work on the device
  };

  CheckedBackend(c10::intrusive_ptr<c10d::Backend> inner, std::shared_ptr<ControlMesh> mesh,
                 const Options& options);

  const std::string getBackendName() const override { return options_.name; }
  c10::DeviceType device_type() const override { return options_.device; }
  void poison(const std::string& message) override;

  using Work = c10::intrusive_ptr<c10d::Work>;
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
  /// Starts the inner collective once the ranks agree. If `mean_of` is defined, it is divided by
  /// the number of ranks afterwards.
  template <class Start>
  Work start(Fingerprint call, std::vector<at::Tensor> result, const at::Tensor& mean_of,
             Start start);
  int root_of(std::int64_t root, Kind kind);
  void require_arithmetic(const at::Tensor& tensor, ReduceOp op, Kind kind);

  c10::intrusive_ptr<c10d::Backend> inner_;
  std::shared_ptr<ControlMesh> mesh_;
  Options options_;
};

} // namespace troupe::collectives
