#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "learner/replicas/input.hpp"
#include "learner/replicas/replica_context.hpp"

namespace troupe::learner {

class Strategy;

struct DistributedInputOptions {
  Pipelines pipelines = Pipelines::per_replica;
  /// Whether the input may end. If so, the replicas agree before each step (one small all_reduce)
  /// that all of them have a batch, and stop together. Otherwise the end of the input is an error.
  bool finite = false;
  std::int64_t first_step = 0; // of a resumed program: InputContext::first_step of its pipelines
  /// For per_worker: how many batches a replica may be ahead of another replica of its process, and
  /// how long it then waits for the other.
  std::size_t ahead = 16;
  std::chrono::milliseconds timeout{60'000};
};

/// Feeds the replicas of a program from its input pipelines. Every replica calls next() on its own
/// thread, as often as the other replicas of its sync group.
class DistributedInput {
public:
  /// Makes the pipeline of the replica with the context `replica`. Runs on that replica's thread.
  using Make = std::function<Input(const InputContext&, const ReplicaContext& replica)>;

  /// Throws std::invalid_argument if an option is out of range.
  DistributedInput(Make make, const Strategy& strategy,
                   const DistributedInputOptions& options = {});

  /// Returns this replica's next batch, or an empty map if the data have ended (with `finite`: for
  /// any replica in sync). Throws whatever the pipeline throws, std::runtime_error if the data end
  /// without `finite`, and std::invalid_argument if the replicas do not step together, for a single
  /// pipeline and for a worker's pipeline that feeds several replicas.
  TensorMap next(ReplicaContext& context);

private:
  TensorMap draw(ReplicaContext& context);
  TensorMap next_of_worker(ReplicaContext& context);
  TensorMap next_of_program(ReplicaContext& context);
  bool all_have(ReplicaContext& context, bool mine) const;
  InputContext context_of(const ReplicaContext& context) const;

  Make make_;
  DistributedInputOptions options_;
  int local_replicas_;
  int worker_;
  int workers_;
  std::vector<Input> inputs_; // [local id]; only the first is used for per_worker and single
  std::vector<std::int64_t> batches_; // [local id]; number of batches taken

  std::mutex mutex_; // guards the members below; used by per_worker
  std::condition_variable taken_;
  std::deque<TensorMap> rounds_; // batches that not all replicas have taken
  std::int64_t first_round_ = 0; // number of the first batch in rounds_
  bool ended_ = false;
};

} // namespace troupe::learner
