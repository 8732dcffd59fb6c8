#pragma once

#include <string>
#include <vector>

#include "learner/tensor_map.hpp"

namespace troupe::learner {

class ShardedState;

/// An optimizer among the tensors of a checkpoint: "optimizer.exp_avg.fc.weight" and
/// "optimizer.step.fc.weight" for each parameter that has made a step, "optimizer.learning_rates"
/// [param groups], float64. Its other numbers (momentum, decay) are the configuration's. Of kinds
/// that optimizer_state() does not know LibTorch's archive as uint8, "optimizer.part0", … one of
/// each replica that keeps a part.

/// Adds it to `out`, copied. `names`: of all parameters, in the optimizer's order; without distinct
/// names, numbers are used. All replicas call it and get the same. Throws std::runtime_error on an
/// optimizer that cannot be saved.
void save_optimizer(ShardedState& optimizer, const std::vector<std::string>& names, TensorMap& out);

/// Takes back what any number of replicas saved, archives too where there are such (which earlier
/// versions wrote for every kind). Throws std::runtime_error naming a tensor that is missing,
/// unexpected or of another shape.
void load_optimizer(ShardedState& optimizer, const std::vector<std::string>& names,
                    const TensorMap& saved);

} // namespace troupe::learner
