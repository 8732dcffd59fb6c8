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
  /// The input ends some day: before each step the replicas agree (one small all_reduce) that all
  /// of them have a batch, and stop together. Without it an input that ends is an error.
  bool finite = false;
  /// per_worker: how many batches a replica may be ahead of another of its process, and how long it
  /// waits for it then.
  std::size_t ahead = 16;
  std::chrono::milliseconds timeout{60'000};
};

/// The input pipelines of a program, whichever way its replicas are fed. Every replica calls next()
/// on its own thread, as often as the others of its sync group.
class DistributedInput {
public:
  /// Makes the pipeline that the replica of `replica` draws from, on its thread.
  using Make = std::function<Input(const InputContext&, const ReplicaContext& replica)>;

  /// Throws std::invalid_argument for options out of range.
  DistributedInput(Make make, const Strategy& strategy,
                   const DistributedInputOptions& options = {});

  /// This replica's next batch; empty when the data have ended (for one of the replicas in sync,
  /// with `finite`). Throws what the pipeline throws, std::runtime_error at an end without
  /// `finite`, and std::invalid_argument for a single pipeline where replicas do not step together.
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
  std::vector<Input> inputs_;         // [local id]; one, for per_worker and single
  std::vector<std::int64_t> batches_; // [local id] taken

  std::mutex mutex_; // of what follows: per_worker
  std::condition_variable taken_;
  std::deque<TensorMap> rounds_; // drawn and not taken by all
  std::int64_t first_round_ = 0; // of rounds_
  bool ended_ = false;
};

} // namespace troupe::learner
