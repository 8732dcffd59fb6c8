#pragma once

#include <filesystem>
#include <string>

#include "experiments/exporting/contract.hpp"
#include "learner/policy_graph/policy_graph.hpp"
#include "learner/policy_graph/weight_type.hpp"

namespace troupe::experiments {

/// Writes a self-contained folder: policy.hpp (C++17: the policy behind its contract, with all its
/// parts), CMakeLists.txt with the target `name`, and parity.cpp, which compares the header with
/// samples.safetensors. Its test allows kLargestDifference (samples.hpp), times the largest gain of
/// an action if that is above 1: float32 numbers of large bounds are coarser. `name` is also the
/// namespace. Throws std::runtime_error with path and reason, and std::invalid_argument if `name`
/// is not an identifier.
void write_header(const std::filesystem::path& folder, const std::string& name,
                  const learner::PolicyGraph& graph, const PolicyContract& contract,
                  learner::WeightType weights);

} // namespace troupe::experiments
