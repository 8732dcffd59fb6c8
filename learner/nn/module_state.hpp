#pragma once

#include <cstdint>
#include <string>

#include "learner/tensor_map.hpp"

namespace torch::nn {
class Module;
}

namespace troupe::learner {

/// Parameters and buffers by name, each name behind `prefix`. They alias the live ones.
TensorMap module_state(const torch::nn::Module& module, const std::string& prefix = "");

/// The tensors whose names begin with `prefix`, without it.
TensorMap below(const TensorMap& tensors, const std::string& prefix);

/// average = decay · average + (1 - decay) · live, of the parameters and buffers of two modules of
/// the same structure; counters are copied. The decay is the least of the given one and (1 +
/// updates) / (10 + updates), so that an average that began at random forgets it soon; to the power
/// of `applied`, the updates that `live` took since the last call
/// (WrappedOptimizer::updates_applied()).
void average_module(torch::nn::Module& average, const torch::nn::Module& live, double decay,
                    std::int64_t updates, std::int64_t applied = 1);

/// Lays the convolutions' weights out as [out, height, width, in] in memory: a third faster on CPUs
/// and tensor cores, for pictures in the same layout. Values and shapes stay the same.
void lay_out_channels_last(torch::nn::Module& module);

/// The type of what is a floating-point number; counters stay (Module::to changes them too).
void change_type(torch::nn::Module& module, at::ScalarType type);

} // namespace troupe::learner
