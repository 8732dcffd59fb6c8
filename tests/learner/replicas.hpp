#pragma once
// A Replica whose replicas are threads.

#include "learner/replicas/replicator.hpp"

namespace troupe::learner {

struct Replicas {
  Replicas(ReplicaFactory factory, int count, const ReplicatorOptions& options = {},
           const DistributedInputOptions& input = {})
      : replicator(make_mirrored_strategy(count), options),
        program(replicator, std::move(factory), input) {}

  std::vector<ReplicaReport> run(std::int64_t steps) { return program.run(steps); }
  Replica& replica(int local_id) { return program.replica(local_id); }

  Replicator replicator;
  ReplicaProgram program;
};

} // namespace troupe::learner
