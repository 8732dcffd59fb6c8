#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collectives/backends/guarded_backend.hpp"

namespace troupe::collectives {

/// One collective of one rank as a backend sees it: contiguous tensors and bytes.
struct FlatCall {
  Fingerprint fingerprint;  // with the number of the call; to be compared over the ranks
  const at::Tensor& input;  // undefined for a barrier
  const at::Tensor& output; // may be the input: always for a broadcast
  std::span<const std::size_t> in_splits;  // all_to_all: bytes of the input for each rank, and
  std::span<const std::size_t> out_splits; // of the output from each, in their order
};

/// c10d's many collectives reduced to one function with six kinds, for backends of ours that move
/// bytes: arguments checked, tensors made contiguous and copied back, lists packed. Derived classes
/// implement run() and poison(). One thread per rank at a time.
///
/// c10d's reduce, gather and scatter come as all_reduce, all_gather and broadcast with a root: all
/// ranks have the memory for a result, and the root alone uses it (a scatter: each rank its part).
class FlatBackend : public GuardedBackend {
public:
  using GuardedBackend::GuardedBackend;

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

protected:
  /// Compares the call over all ranks and executes it. Throws CollectiveError, on all ranks, unless
  /// all ranks made an equal call in time.
  virtual void run(const FlatCall& call) = 0;

private:
  void call(Fingerprint fingerprint, const at::Tensor& input, const at::Tensor& output);
  void require(bool held, Kind kind, const std::string& rule);
  void require_root(std::int64_t root, Kind kind);
  void require_arithmetic(const at::Tensor& tensor, ReduceOp op, Kind kind);
  void set_splits(const at::Tensor& output, const at::Tensor& input,
                  const std::vector<int64_t>& output_splits,
                  const std::vector<int64_t>& input_splits);

  std::uint64_t sequence_ = 0;
  std::vector<std::size_t> in_splits_; // of the all_to_all under way
  std::vector<std::size_t> out_splits_;
};

} // namespace troupe::collectives
