#pragma once

#include <memory>

#include "collectives/guarded_backend.hpp"
#include "collectives/meeting.hpp"

namespace troupe::collectives {

/// Ranks as threads of one process, on CPU tensors. Every call blocks until it is done; large data
/// are reduced in parallel, each rank its own slice, straight from and into the ranks' own tensors
/// (no staging copy), in the order of the ranks: results are bit-equal on all ranks and in all
/// runs. One thread per rank at a time.
class ThreadBackend : public GuardedBackend {
public:
  ThreadBackend(int rank, std::shared_ptr<Meeting> meeting);
  ~ThreadBackend() override;

  const std::string getBackendName() const override { return "threads"; }
  void poison(const std::string& message) override;

  using Work = c10::intrusive_ptr<c10d::Work>;
  Work allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  Work broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  Work allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                 const c10d::AllgatherOptions& options) override;
  Work _allgather_base(at::Tensor& output, at::Tensor& input,
                       const c10d::AllgatherOptions& options) override;
  Work reduce_scatter(std::vector<at::Tensor>& outputs,
                      std::vector<std::vector<at::Tensor>>& inputs,
                      const c10d::ReduceScatterOptions& options) override;
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                            const c10d::ReduceScatterOptions& options) override;
  Work alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                const c10d::AllToAllOptions& options) override;
  /// Empty splits: equal ones along the first dimension.
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                     std::vector<int64_t>& input_splits,
                     const c10d::AllToAllOptions& options) override;
  Work barrier(const c10d::BarrierOptions& options) override;

private:
  using Part = void (ThreadBackend::*)(int rank, const Fingerprint& call);

  /// Fills this rank's slot, meets, and has `part` done for every rank.
  void run(Fingerprint call, const at::Tensor& input, const at::Tensor& output, Part part);
  void require(bool held, Kind kind, const std::string& rule);
  void set_splits(const at::Tensor& output, const at::Tensor& input,
                  const std::vector<int64_t>& output_splits,
                  const std::vector<int64_t>& input_splits);

  void reduce_part(int rank, const Fingerprint& call);
  void broadcast_part(int rank, const Fingerprint& call);
  void gather_part(int rank, const Fingerprint& call);
  void scatter_part(int rank, const Fingerprint& call);
  void exchange_part(int rank, const Fingerprint& call);
  void barrier_part(int, const Fingerprint&) {}
  void check_splits() const;

  std::shared_ptr<Meeting> meeting_;
  std::uint64_t sequence_ = 0;
};

} // namespace troupe::collectives
