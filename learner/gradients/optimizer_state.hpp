#pragma once

#include "learner/tensor_map.hpp"

namespace torch::optim {
class Optimizer;
}

namespace troupe::learner {

/// The moments and counters of an optimizer by name: "0.exp_avg" is that of the first parameter
/// (over all param groups). Tensors alias the live ones, so that changing them changes the
/// optimizer; counters are int64 of one element. Of the optimizers that describe() knows; of any
/// other what its own save() writes, as "archive", uint8. Parameters that have made no step yet
/// have none.
TensorMap optimizer_state(torch::optim::Optimizer& optimizer);

/// Whether it is one of these optimizers, whose state has names.
bool knows_state_of(const torch::optim::Optimizer& optimizer);

/// Takes over what optimizer_state() of an optimizer of the same kind and parameters gave, copied.
/// Throws std::invalid_argument naming what is missing, unexpected or of another shape or type; the
/// optimizer may then have taken some of it.
void load_optimizer_state(torch::optim::Optimizer& optimizer, const TensorMap& state);

} // namespace troupe::learner
