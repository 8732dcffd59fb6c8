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

/// A replica's place in a strategy. The objects pointed to must outlive the replica's context.
struct ReplicaAssignment {
  int replica_id = 0;   // among all replicas of the program
  int num_replicas = 1; // of the program
  int local_id = 0;     // within this process
  int sync_group = 0;   // replicas of one sync group step together
  int num_sync_groups = 1;
  collectives::Communicator* communicator = nullptr; // the sync group's; null: no collectives
  int replicas_in_sync = 0;           // size of an update; 0: the communicator's size, or 1
  UpdateRuleFactory update_rule = {}; // empty: average over the sync group; every replica steps
  bool own_parameters = false;        // whether parameters differ between replicas in sync
  collectives::Timeline* timeline = nullptr; // this replica's; null: nothing is recorded
  std::vector<at::Device> devices = {};      // this replica's; empty: the CPU
};

/// A replica's view of its strategy: its position, its devices, the collectives of its sync group,
/// and optimizers that exchange gradients. Valid only on the replica's thread.
class ReplicaContext : public ReplicaCollectives {
public:
  /// `communicator` must outlive this object; it may be null for a single replica.
  explicit ReplicaContext(collectives::Communicator* communicator, std::uint64_t seed = 0,
                          at::Device device = at::kCPU);
  explicit ReplicaContext(ReplicaAssignment assignment, std::uint64_t seed = 0);

  int replica_id() const { return assignment_.replica_id; }
  int num_replicas() const { return assignment_.num_replicas; }
  int local_id() const { return assignment_.local_id; }
  int sync_group() const { return assignment_.sync_group; }
  int num_sync_groups() const { return assignment_.num_sync_groups; }
  int num_replicas_in_sync() const; // number contributing to an update
  /// Whether parameters differ between the replicas, so that a checkpoint needs those of each.
  bool own_parameters() const { return assignment_.own_parameters; }
  /// Whether all replicas in sync have the same parameters between two steps. Only then can they
  /// share one computation, such as an evaluation, by collectives.
  bool parameters_are_equal() const { return has_collectives() && !own_parameters(); }
  std::uint64_t seed() const { return seed_; } // this replica's, derived from the run's seed

  /// device() returns the replica's first device, logical_device(i) any of them. A replica may
  /// spread its network over several devices (model parallelism). Throws std::out_of_range naming
  /// the number of devices.
  at::Device device() const { return logical_device(0); }
  int num_logical_devices() const { return static_cast<int>(assignment_.devices.size()); }
  at::Device logical_device(int i) const;
  /// Returns where the variables of logical device i are kept: on the device itself, or on the host
  /// for strategies that keep variables there.
  at::Device logical_device_for_variables(int i) const { return logical_device(i); }

  collectives::Timeline* timeline() { return assignment_.timeline; } // null: nothing is recorded

  /// Wraps an optimizer so that step() follows the strategy: gradients are averaged over the
  /// replicas, sent to parameter servers, … Immediately makes the replicas' parameters equal.
  std::unique_ptr<WrappedOptimizer>
  wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer);
  std::unique_ptr<WrappedOptimizer>
  wrap_optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer,
                 const WrappedOptimizerOptions& options);

  /// The run's learning rates, as multiples of the replica's own. They must be set before
  /// Replica::build(), which reads them when it makes its optimizers and applies them at each step.
  void set_learning_rates(LearningRateSchedule schedule) { learning_rates_ = std::move(schedule); }
  const LearningRateSchedule& learning_rates() {
    learning_rates_read_ = true;
    return learning_rates_;
  }
  bool learning_rates_read() const { return learning_rates_read_; }

  /// Until this replica's next step, replicas that do not step together with it do not wait for it.
  void suspend_participation();

  /// Call it after Replica::load(). Restores the values of parameters that servers hold.
  void on_parameters_restored();

  /// rule_state() returns what the wrapped optimizers' rules need to resume, under names that begin
  /// with "update_rule.". load_rule_state() removes such entries from a state that was saved after
  /// `updates` updates, and loads them. If there are none, the rules start again.
  TensorMap rule_state() const;
  void load_rule_state(TensorMap& state, std::int64_t updates);

  /// Returns the metrics of the wrapped optimizers' last updates under a strategy's rule, for
  /// plotting. Over several optimizers, each metric is the maximum; "learning_rate_scale" and
  /// "version" are the minimum.
  std::map<std::string, double> metrics() const;

private:
  ReplicaAssignment assignment_;
  int optimizers_ = 0;                           // number of optimizers wrapped so far
  std::vector<std::weak_ptr<UpdateRule>> rules_; // the optimizers' rules, while they exist
  std::uint64_t seed_;
  LearningRateSchedule learning_rates_;
  bool learning_rates_read_ = false;
};

} // namespace troupe::learner
