#pragma once

#include <string>
#include <vector>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

class ShardedState;

/// The tensors of an optimizer in a checkpoint. Each parameter that has made a step has for example
/// "optimizer.exp_avg.fc.weight" and "optimizer.step.fc.weight". "optimizer.learning_rates" is
/// float64 [parameter groups]. Other options (momentum, decay) come from the configuration. If
/// optimizer_state() does not know the kind of optimizer, the checkpoint has LibTorch's archives as
/// uint8 instead: "optimizer.part0", …, one from each replica that keeps a part.

/// Adds copies of these tensors to `out`. `names` are the names of all parameters in the
/// optimizer's order; unless they are distinct and not empty, numbers are used instead. All
/// replicas must call this, and all get the same result. Throws std::runtime_error if the optimizer
/// cannot be saved.
void save_optimizer(ShardedState& optimizer, const std::vector<std::string>& names, TensorMap& out);

/// Restores what any number of replicas saved. Archives are accepted for every kind, because
/// earlier versions wrote them. Throws std::runtime_error naming a tensor that is missing,
/// unexpected or of the wrong shape; the optimizer then keeps its own state.
void load_optimizer(ShardedState& optimizer, const std::vector<std::string>& names,
                    const TensorMap& saved);

} // namespace troupe::learner
