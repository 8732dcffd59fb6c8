#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collectives/backends/guarded_backend.hpp"

namespace troupe::collectives {

/// One rank's part of a collective, as contiguous tensors and byte counts.
struct FlatCall {
  Fingerprint fingerprint;                 // with the call's sequence number; compared across ranks
  const at::Tensor& input;                 // undefined for a barrier
  const at::Tensor& output;                // may be the input, and always is for a broadcast
  std::span<const std::size_t> in_splits;  // all_to_all only: input bytes for each rank
  std::span<const std::size_t> out_splits; // all_to_all only: output bytes from each rank
};

/// Reduces c10d's many collectives to one function with six kinds, for our backends that move
/// bytes. It checks arguments, makes tensors contiguous, copies results back and packs lists.
/// Derived classes implement run() and poison(). At most one thread per rank may call it at a time.
///
/// c10d's reduce, gather and scatter arrive as all_reduce, all_gather and broadcast with a root.
/// All ranks have memory for the result, but only the root uses it; in a scatter, each rank uses
/// its own part.
class FlatBackend : public GuardedBackend {
public:
  using GuardedBackend::GuardedBackend;

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
  Work reduce_scatter(std::vector<at::Tensor>& outputs,
                      std::vector<std::vector<at::Tensor>>& inputs,
                      const c10d::ReduceScatterOptions& options) override;
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                            const c10d::ReduceScatterOptions& options) override;
  Work alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                const c10d::AllToAllOptions& options) override;
  /// Empty splits mean equal splits along the first dimension.
  Work alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                     std::vector<int64_t>& input_splits,
                     const c10d::AllToAllOptions& options) override;
  Work barrier(const c10d::BarrierOptions& options) override;

protected:
  /// Compares the call across all ranks and executes it. Throws CollectiveError on all ranks unless
  /// every rank makes an equal call in time.
  virtual void run(const FlatCall& call) = 0;

private:
  void call(Fingerprint fingerprint, const at::Tensor& input, const at::Tensor& output);
  void require(bool held, Kind kind, const std::string& rule);
  void set_splits(const at::Tensor& output, const at::Tensor& input,
                  const std::vector<int64_t>& output_splits,
                  const std::vector<int64_t>& input_splits);

  std::uint64_t sequence_ = 0;
  std::vector<std::size_t> in_splits_; // of the all_to_all in progress
  std::vector<std::size_t> out_splits_;
};

} // namespace troupe::collectives
