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

/// Which of `replicas` steps each parameter: whole parameters, the largest first to the replica
/// with the least. [parameter]
std::vector<int> owners_of(const std::vector<at::Tensor>& parameters, int replicas);

/// The state of any optimizer in parts, one per replica (ZeRO-1): its parameter groups are cut down
/// to the parameters that this replica steps, and what they become is sent to the others.
class ShardedState {
public:
  /// A null communicator: one part, nothing is cut.
  ShardedState(torch::optim::Optimizer& optimizer, collectives::Communicator* communicator);

  /// After a step of the optimizer: all replicas get all parameters. Throws CollectiveError.
  void publish();

  /// The parts of all replicas, uint8 [bytes] each, on every replica. All call it. Throws
  /// std::runtime_error for an optimizer that cannot be saved.
  std::vector<at::Tensor> save();
  /// Parts that any number of replicas saved. Throws std::runtime_error for bytes that are no state
  /// of this optimizer.
  void load(const std::vector<at::Tensor>& parts);

  /// The state of all parameters on every replica, as optimizer_state() names it; of kinds that it
  /// knows. All call it. For its time the whole state is in memory.
  TensorMap gather();
  /// Keeps of such a state this replica's part. Throws std::invalid_argument as
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
  std::vector<std::vector<at::Tensor>> groups_; // [group][parameter], whole
  std::vector<at::Tensor> parameters_;
  std::vector<int> owners_;
};

} // namespace troupe::learner
