#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "collectives/elastic_group.hpp"
#include "learner/replicator.hpp"

namespace troupe::learner {

struct ElasticOptions {
  std::uint64_t seed = 1; // of the run; each replica's is split from it
  int threads = 1;        // of LibTorch
  /// Steps between two copies of the state in memory, to which a failure goes back. 1: no step is
  /// made twice, at the cost of a copy per step.
  std::int64_t copy_every = 1;
  at::Device device = at::kCPU;
  /// The rules of another strategy than averaged gradients (local_sgd_rules), made for each
  /// generation's communicator; it is given the parameters of one of the survivors.
  std::function<UpdateRuleFactory(collectives::Communicator&)> rules = {};
};

/// A change of the group while the program ran.
struct ElasticChange {
  std::int64_t step = 0; // that the replicas go on from
  collectives::Membership membership;
  std::string reason;
};

/// A Replica that outlives the loss of others and takes newcomers in: one per process, on the
/// calling thread. When a rank is lost the survivors go back to the last step that one of them had
/// begun, in a smaller group; a newcomer is given the state. Random streams
/// ("random.…" of the state, the context's seed) stay each replica's own, a newcomer's are new. The
/// replica is built anew each time and its input asked to go on from InputContext::first_step, so
/// that a program whose global batches do not hang on the number of replicas learns as if nothing
/// had happened.
class ElasticProgram {
public:
  /// `group` outlives this. Builds nothing yet.
  ElasticProgram(collectives::ElasticGroup& group, ReplicaFactory factory,
                 const ElasticOptions& options = {});
  ~ElasticProgram();

  /// Until `steps` steps are made in all, or the input ends; 0 builds the replica. Throws
  /// collectives::LeftOut when the others have gone on without this process, CollectiveError when
  /// too few are left, and what the replica throws (the others then go on without it).
  Metrics run(std::int64_t steps);

  std::int64_t steps() const { return steps_; }
  const std::vector<ElasticChange>& changes() const { return changes_; }
  /// After run().
  Replica& replica() { return *replica_; }

private:
  struct Copy {
    std::int64_t steps = -1; // none yet
    TensorMap parameters;
    TensorMap optimizer_state;
  };

  void build();
  void tear_down();
  void take_copy();

  collectives::ElasticGroup& group_;
  ReplicaFactory factory_;
  ElasticOptions options_;
  std::int64_t steps_ = 0;
  std::vector<ElasticChange> changes_;
  Copy copy_;
  std::unique_ptr<ReplicaContext> context_;
  std::unique_ptr<Replica> replica_;
  Input input_;
};

} // namespace troupe::learner
