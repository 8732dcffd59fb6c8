#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "collectives/communicator.hpp"
#include "collectives/mesh/fingerprint.hpp"

namespace troupe::collectives {

/// A c10d backend that checks every collective across ranks before data move and that can be
/// poisoned. It is the base class of FlatBackend and of the checked wrapper around LibTorch's
/// backends.
class GuardedBackend : public c10d::Backend {
public:
  using Backend::Backend;

  /// Makes every later call on any rank throw CollectiveError(message). Any thread may call it.
  virtual void poison(const std::string& message) = 0;

  /// The type of device whose tensors this backend accepts.
  virtual c10::DeviceType device_type() const { return at::kCPU; }

  /// c10d's coalesced collectives, executed one after the other.
  using Work = c10::intrusive_ptr<c10d::Work>;
  Work allreduce_coalesced(std::vector<at::Tensor>& tensors,
                           const c10d::AllreduceCoalescedOptions& options) override;
  Work allgather_coalesced(std::vector<std::vector<at::Tensor>>& outputs,
                           std::vector<at::Tensor>& inputs,
                           const c10d::AllgatherOptions& options) override;
  Work allgather_into_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                       std::vector<at::Tensor>& inputs,
                                       const c10d::AllgatherOptions& options) override;
  Work reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                       std::vector<at::Tensor>& inputs,
                                       const c10d::ReduceScatterOptions& options) override;

protected:
  /// Returns the only tensor of a c10d list after checking that it is dense and on this device. An
  /// invalid argument poisons the group, because the other ranks would wait for this one.
  at::Tensor& only(std::vector<at::Tensor>& tensors, Kind kind);
  int root_of(std::int64_t root, Kind kind); // refuses a root that is not a rank
  /// Converts c10d's operation. Refuses one that is not of to_c10d(), or not defined for the
  /// tensor's type.
  ReduceOp operation(const c10d::ReduceOp& op, const at::Tensor& tensor, Kind kind);
  [[noreturn]] void refuse(Kind kind, const std::string& rule);
};

/// A completed collective.
c10::intrusive_ptr<c10d::Work> done_work(std::vector<at::Tensor> result);

/// Converts to c10d's operation. Returns UNUSED for `first`, which is not a c10d reduction.
c10d::ReduceOp to_c10d(ReduceOp op);

} // namespace troupe::collectives
