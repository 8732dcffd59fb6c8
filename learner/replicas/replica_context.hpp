#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "collectives/timeline.hpp"
#include "learner/gradients/schedule.hpp"
#include "learner/gradients/update_rule.hpp"
#include "learner/replicas/replica_collectives.hpp"

namespace torch::optim {
class Optimizer;
}

namespace troupe::learner {

class WrappedOptimizer;
struct WrappedOptimizerOptions;

/// Where a strategy puts a replica. The pointers outlive the replica's context.
struct ReplicaAssignment {
  int replica_id = 0;   // among all replicas of the program
  int num_replicas = 1; // of the program
  int local_id = 0;     // within this process
  int sync_group = 0;   // whose replicas step together
  int num_sync_groups = 1;
  collectives::Communicator* communicator = nullptr; // of the sync group; null: no collectives
  int replicas_in_sync = 0; // whose gradients make an update; 0: the communicator's size, or 1
  UpdateRuleFactory update_rule = {}; // empty: gradients are averaged over the sync group, the
                                      // optimizer steps on every replica
  collectives::Timeline* timeline = nullptr; // of this replica; null: nothing is recorded
  std::vector<at::Device> devices = {};      // of this replica; empty: the CPU
};

/// A replica's view of its strategy: its position, its devices, the collectives of its sync group,
/// and optimizers that exchange gradients. Valid only on the replica's thread.
class ReplicaContext : public ReplicaCollectives {
public:
  /// `communicator` may be null for a single replica and must outlive this.
  explicit ReplicaContext(collectives::Communicator* communicator, std::uint64_t seed = 0,
                          at::Device device = at::kCPU);
  explicit ReplicaContext(ReplicaAssignment assignment, std::uint64_t seed = 0);

  int replica_id() const { return assignment_.replica_id; }
  int num_replicas() const { return assignment_.num_replicas; }
  int local_id() const { return assignment_.local_id; }
  int sync_group() const { return assignment_.sync_group; }
  int num_sync_groups() const { return assignment_.num_sync_groups; }
  int num_replicas_in_sync() const;            // whose gradients make an update
  std::uint64_t seed() const { return seed_; } // of this replica, split from the run's seed

  /// The first of the replica's devices, and each of them: a replica may spread its network over
  /// several (model parallelism). Throws std::out_of_range naming how many there are.
  at::Device device() const { return logical_device(0); }
  int num_logical_devices() const { return static_cast<int>(assignment_.devices.size()); }
  at::Device logical_device(int i) const;
  /// Where the variables of logical device i are: on the device itself, or on the host for
  /// strategies that keep variables there.
  at::Device logical_device_for_variables(int i) const { return logical_device(i); }

  collectives::Timeline* timeline() { return assignment_.timeline; } // null: not recorded

  /// An optimizer whose step() is the strategy's: gradients averaged over the replicas, or sent to
  /// parameter servers, … Makes the replicas' parameters equal, now.
  std::unique_ptr<WrappedOptimizer>
  wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer);
  std::unique_ptr<WrappedOptimizer>
  wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                 const WrappedOptimizerOptions& options);

  /// Learning rates of the run, as multiples of the replica's own. Set before
  /// Replica::build(), which reads them when it makes its optimizers, and steps by them.
  void set_learning_rates(LearningRateSchedule schedule) { learning_rates_ = std::move(schedule); }
  const LearningRateSchedule& learning_rates() {
    learning_rates_read_ = true;
    return learning_rates_;
  }
  bool learning_rates_read() const { return learning_rates_read_; }

  /// Until its next step, replicas that do not step together do not wait for this one.
  void suspend_participation();

  /// After Replica::load(): restores the values of parameters that servers hold.
  void on_parameters_restored();

  /// Of the last updates of the wrapped optimizers under a strategy's rule, for the curves: the
  /// most over the optimizers of each, of "learning_rate_scale" and "version" the least.
  std::map<std::string, double> metrics() const;

private:
  ReplicaAssignment assignment_;
  int optimizers_ = 0;                           // wrapped so far
  std::vector<std::weak_ptr<UpdateRule>> rules_; // theirs, while they exist
  std::uint64_t seed_;
  LearningRateSchedule learning_rates_;
  bool learning_rates_read_ = false;
};

} // namespace troupe::learner
