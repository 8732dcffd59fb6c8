#pragma once

#include <filesystem>

#include "experiments/exporting/contract.hpp"
#include "experiments/exporting/samples.hpp"
#include "learner/policy_graph/policy_graph.hpp"

namespace troupe::experiments {

/// Both functions write a safetensors file with the contract as the metadata "contract". They throw
/// std::runtime_error with path and reason.

/// Writes "observation" [count, …], "vectors" [count, numbers], "first" [count], "action" [count,
/// size] and, with rounded weights, "rounded_action" [count, size].
void write_samples(const std::filesystem::path& path, const PolicySamples& samples, bool picture,
                   const PolicyContract& contract);

/// Writes the layers' parameters: "layer0.weight", ….
void write_parameters(const std::filesystem::path& path, const learner::PolicyGraph& graph,
                      const PolicyContract& contract);

} // namespace troupe::experiments
