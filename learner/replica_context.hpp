#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "collectives/communicator.hpp"
#include "collectives/nest.hpp"
#include "collectives/timeline.hpp"

namespace torch::optim {
class Optimizer;
}

namespace troupe::learner {

using collectives::Nest;
using collectives::ReduceOp;

class UpdateRule;
class WrappedOptimizer;
struct WrappedOptimizerOptions;

/// Makes the rule of a replica's wrapped optimizer number `optimizer`, counted from 0.
using UpdateRuleFactory = std::function<std::unique_ptr<UpdateRule>(int optimizer)>;

/// Where a strategy puts a replica. The pointers outlive the replica's context.
struct ReplicaSeat {
  int replica_id = 0;   // among all replicas of the program
  int num_replicas = 1; // of the program
  int local_id = 0;     // among those of this process
  int sync_group = 0;   // whose replicas step together
  int num_sync_groups = 1;
  collectives::Communicator* communicator = nullptr; // of the sync group; null: no collectives
  int replicas_in_sync = 0; // whose gradients make an update; 0: the communicator's size, or 1
  UpdateRuleFactory update_rule = {}; // empty: gradients are averaged over the sync group, the
                                      // optimizer steps on every replica
  collectives::Timeline* timeline = nullptr; // of this replica; null: nothing is recorded
  std::vector<at::Device> devices = {};      // of this replica; empty: the CPU
};

/// What a replica may ask of the others: the collectives of its sync group, on tensors and on
/// nests of them. All replicas of the group call the same in the same order; otherwise every one
/// of them throws CollectiveError saying who called what. Valid on the thread of its replica only.
///
/// The functions that return tensors are differentiable, also on one replica: the gradient is that
/// of the sum of all replicas' losses (which wrap_optimizer then averages). Backward passes are
/// collectives too, so that all replicas run them.
class ReplicaContext {
public:
  /// `communicator` may be null for a single replica and must outlive this.
  explicit ReplicaContext(collectives::Communicator* communicator, std::uint64_t seed = 0,
                          at::Device device = at::kCPU);
  explicit ReplicaContext(ReplicaSeat seat, std::uint64_t seed = 0);

  int replica_id() const { return seat_.replica_id; }
  int num_replicas() const { return seat_.num_replicas; }
  int local_id() const { return seat_.local_id; }
  int sync_group() const { return seat_.sync_group; }
  int num_sync_groups() const { return seat_.num_sync_groups; }
  int rank_in_sync_group() const;
  int num_replicas_in_sync() const; // whose gradients make an update
  /// Whether the replicas in sync wait for each other. Where they do not (backup workers) the
  /// collectives below throw CollectiveError.
  bool has_collectives() const { return seat_.communicator || num_replicas_in_sync() == 1; }
  std::uint64_t seed() const { return seed_; } // of this replica, split from the run's seed

  /// The first of the replica's devices, and each of them: a replica may spread its network over
  /// several (model parallelism). Throws std::out_of_range naming how many there are.
  at::Device device() const { return logical_device(0); }
  int num_logical_devices() const { return static_cast<int>(seat_.devices.size()); }
  at::Device logical_device(int i) const;
  /// Where the variables of logical device i lie: the device itself, or the host for strategies
  /// that keep variables there.
  at::Device logical_device_for_variables(int i) const { return logical_device(i); }

  /// Reduced over the replicas. Gradients: sum, mean, first; min and max share theirs equally
  /// among the elements that attain them; a product has none.
  at::Tensor all_reduce(const at::Tensor& tensor, ReduceOp op = ReduceOp::mean);
  Nest all_reduce(const Nest& nest, ReduceOp op = ReduceOp::mean); // one call per type
  /// [replica] equal shapes.
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor);
  std::vector<Nest> all_gather(const Nest& nest);
  /// Rows of all replicas, in their order: [rows of each, …] -> [sum, …]. Each may have another
  /// number of rows, none among them.
  at::Tensor all_gather_rows(const at::Tensor& tensor);
  /// Part `rank` of the reduced tensor: [size·n, …] -> [n, …]. Sum and mean have gradients.
  at::Tensor reduce_scatter(const at::Tensor& tensor, ReduceOp op = ReduceOp::mean);
  Nest reduce_scatter(const Nest& nest, ReduceOp op = ReduceOp::mean);
  at::Tensor broadcast(const at::Tensor& tensor, int root = 0); // shapes equal on all
  Nest broadcast(const Nest& nest, int root = 0);
  /// out[i] goes to replica i; [i] comes from it. Equal shapes.
  std::vector<at::Tensor> all_to_all(const std::vector<at::Tensor>& out);
  std::vector<Nest> all_to_all(const std::vector<Nest>& out);
  void barrier();

  /// `function` over `items`, which are the same on every replica: replica r does items r, r +
  /// size, … The results, of one structure, gathered on all in the order of the items, or reduced.
  /// No gradient.
  std::vector<Nest> map_gather(const std::vector<Nest>& items,
                               const std::function<Nest(const Nest&)>& function);
  Nest map_reduce(const std::vector<Nest>& items, const std::function<Nest(const Nest&)>& function,
                  ReduceOp op = ReduceOp::sum);

  /// In place, without a gradient.
  void all_reduce_(at::Tensor& tensor, ReduceOp op = ReduceOp::mean);
  void broadcast_(at::Tensor& tensor, int root = 0);

  collectives::Communicator* communicator() { return seat_.communicator; }
  collectives::Timeline* timeline() { return seat_.timeline; } // null: not recorded

  /// An optimizer whose step() is the strategy's: gradients averaged over the replicas, or sent to
  /// parameter servers, … Makes the replicas' parameters alike, now.
  std::unique_ptr<WrappedOptimizer>
  wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer);
  std::unique_ptr<WrappedOptimizer>
  wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                 const WrappedOptimizerOptions& options);

  /// This replica has made the steps of a run; it may go on later. Those of another strategy than
  /// lockstep do not wait for it meanwhile.
  void rest();

  /// After Replica::load(): parameters that servers hold are theirs again.
  void loaded();

  /// Of the last updates of the wrapped optimizers under a strategy's rule, for the curves: the
  /// most over the optimizers of each, of "learning_rate_scale" and "version" the least.
  std::map<std::string, double> metrics() const;

private:
  collectives::Communicator* group(const char* call) const; // null: this replica alone
  int group_size() const;
  void check_structure(const Nest& nest, const char* call);
  Nest pack_and_call(const Nest& nest, const char* call,
                     const std::function<at::Tensor(const at::Tensor&)>& function);

  ReplicaSeat seat_;
  int optimizers_ = 0;                           // wrapped so far
  std::vector<std::weak_ptr<UpdateRule>> rules_; // theirs, as long as they live
  std::vector<std::uint64_t> verified_; // structures of nests that all replicas agreed on, sorted
  std::uint64_t seed_;
};

} // namespace troupe::learner
