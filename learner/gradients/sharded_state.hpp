#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

#include "learner/tensor_map.hpp"

namespace torch::optim {
class Optimizer;
}
namespace troupe::collectives {
class Communicator;
}

namespace troupe::learner {

/// Assigns each parameter to one of `replicas`, which steps it. Whole parameters are assigned, the
/// largest first, always to the replica with the least so far. Returns [parameter].
std::vector<int> owners_of(const std::vector<at::Tensor>& parameters, int replicas);

/// The state of any optimizer, divided over the replicas (ZeRO-1). The optimizer's parameter groups
/// are reduced to the parameters that this replica steps, and the results are sent to the other
/// replicas.
class ShardedState {
public:
  /// With a null communicator, this replica keeps the whole state.
  ShardedState(torch::optim::Optimizer& optimizer, collectives::Communicator* communicator);

  /// Call this after a step of the optimizer: it sends the stepped parameters to all replicas.
  /// Throws CollectiveError.
  void publish();

  /// Returns the parts of all replicas, each uint8 [bytes], on every replica. All replicas must
  /// call it. Throws std::runtime_error if the optimizer cannot be saved.
  std::vector<at::Tensor> save();
  /// Loads the parts that any number of replicas saved. Throws std::runtime_error if the bytes are
  /// not a state of this optimizer, which then keeps its own.
  void load(const std::vector<at::Tensor>& parts);

  /// Returns the state of all parameters on every replica, with the names of optimizer_state().
  /// Only for optimizers whose state has names (knows_state_of()). All replicas must call it. The
  /// whole state is in memory while the result exists.
  TensorMap gather();
  /// Loads this replica's part of such a state. Throws std::invalid_argument as
  /// load_optimizer_state() does.
  void scatter(const TensorMap& state);

  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; } // of all replicas

private:
  void cut(const std::vector<int>& owners, int owner);
  void make_whole();
  void take_part(const std::vector<int>& writers, std::size_t part, const at::Tensor& bytes);
  void forget_others();
  void keep_own();

  torch::optim::Optimizer* optimizer_;
  collectives::Communicator* communicator_;
  std::vector<std::vector<at::Tensor>> groups_; // [group][parameter], of all replicas
  std::vector<at::Tensor> parameters_;
  std::vector<int> owners_;
};

} // namespace troupe::learner
