#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::optim {
class Optimizer;
}
namespace troupe::collectives {
class Communicator;
}

namespace troupe::learner {

/// Which of `replicas` steps each parameter: whole parameters, the largest first to whoever has the
/// least. [parameter]
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

private:
  void cut(const std::vector<int>& owners, int owner);

  torch::optim::Optimizer* optimizer_;
  collectives::Communicator* communicator_;
  std::vector<std::vector<at::Tensor>> groups_; // [group][parameter], whole
  std::vector<at::Tensor> parameters_;
  std::vector<int> owners_;
};

} // namespace troupe::learner
