#pragma once

#include "collectives/backends/async_backend.hpp"

namespace troupe::collectives {

/// A Communicator over any guarded c10d backend. Its own calls run on the calling thread, after all
/// pending calls of the process group have completed. For CPU tensors, calls of the process group
/// run on a separate thread while the caller continues.
class BackendCommunicator : public Communicator {
public:
  BackendCommunicator(c10::intrusive_ptr<GuardedBackend> backend, at::Device device);
  ~BackendCommunicator() override;

  int rank() const override;
  int size() const override;
  std::string backend() const override;
  void all_reduce(at::Tensor& tensor, ReduceOp op) override;
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override;
  void broadcast(at::Tensor& tensor, int root) override;
  at::Tensor reduce_scatter(const at::Tensor& tensor, ReduceOp op) override;
  std::vector<at::Tensor> all_to_all(const std::vector<at::Tensor>& out) override;
  void barrier() override;
  void abort(const std::string& reason) override;
  c10::intrusive_ptr<c10d::ProcessGroup> process_group() override;

private:
  GuardedBackend& idle();
  [[noreturn]] void refuse(const std::string& what);

  c10::intrusive_ptr<GuardedBackend> backend_;
  at::Device device_;
  c10::intrusive_ptr<AsyncBackend> async_; // made with the process group; CPU only
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
};

} // namespace troupe::collectives
