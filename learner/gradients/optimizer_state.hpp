#pragma once

#include "learner/tensor_map.hpp"

namespace torch::optim {
class Optimizer;
}

namespace troupe::learner {

/// What the optimizer's save() writes, uint8 [bytes]. Throws std::runtime_error if it fails.
at::Tensor optimizer_archive(const torch::optim::Optimizer& optimizer);
/// Calls load() of the optimizer. Throws std::runtime_error if the bytes do not fit it.
void load_optimizer_archive(torch::optim::Optimizer& optimizer, const at::Tensor& bytes);

/// The moments and counters of an optimizer by name. "0.exp_avg" belongs to the first parameter,
/// counted over all parameter groups. Tensors alias the optimizer's own, so that changing them
/// changes the optimizer. Counters are int64 tensors of one element. Parameters that have not made
/// a step yet have no entries. For an optimizer that describe() does not know, the only entry is
/// "archive", its optimizer_archive().
TensorMap optimizer_state(torch::optim::Optimizer& optimizer);

/// Whether optimizer_state() returns named tensors for this optimizer.
bool knows_state_of(const torch::optim::Optimizer& optimizer);

/// Copies into the optimizer what optimizer_state() returned for one of the same kind and
/// parameters. Throws std::invalid_argument naming an entry that is missing, unexpected or of the
/// wrong shape or type; then the optimizer is unchanged, unless its state is an "archive".
void load_optimizer_state(torch::optim::Optimizer& optimizer, const TensorMap& state);

} // namespace troupe::learner
