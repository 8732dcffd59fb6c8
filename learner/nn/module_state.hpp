#pragma once

#include <cstdint>
#include <string>

#include "learner/tensor_map.hpp"

namespace torch::nn {
class Module;
}

namespace troupe::learner {

/// Returns the parameters and buffers by name, each name preceded by `prefix`. They alias the live
/// tensors.
TensorMap module_state(const torch::nn::Module& module, const std::string& prefix = "");

/// Returns the tensors whose names begin with `prefix`, under their names without it.
TensorMap below(const TensorMap& tensors, const std::string& prefix);

/// Updates average = decay · average + (1 - decay) · live for the parameters and buffers of two
/// modules with the same structure; counters are copied. The effective decay is the minimum of
/// `decay` and (1 + updates) / (10 + updates), so that an average with a random start soon forgets
/// it. It is raised to the power of `applied`, the number of updates of `live` since the last call
/// (WrappedOptimizer::updates_applied()).
void average_module(torch::nn::Module& average, const torch::nn::Module& live, double decay,
                    std::int64_t updates, std::int64_t applied = 1);

/// Lays out the weights of convolutions as [out, height, width, in] in memory. This is a third
/// faster on CPUs and tensor cores, for pictures in the same layout. Values and shapes do not
/// change.
void lay_out_channels_last(torch::nn::Module& module);

/// Changes the type of floating-point tensors. Counters keep theirs (Module::to would change them
/// too).
void change_type(torch::nn::Module& module, at::ScalarType type);

} // namespace troupe::learner
