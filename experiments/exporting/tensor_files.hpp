#pragma once

#include <filesystem>

#include "experiments/exporting/contract.hpp"
#include "experiments/exporting/samples.hpp"
#include "learner/policy_graph/policy_graph.hpp"

namespace troupe::experiments {

/// Both write a safetensors file with the contract as metadata "contract", and throw
/// std::runtime_error naming path and reason.

/// "observation" [count, …], "vectors" [count, numbers], "first" [count], "action" [count, size].
void write_samples(const std::filesystem::path& path, const PolicySamples& samples, bool picture,
                   const PolicyContract& contract);

/// The layers' numbers: "layer0.weight", ….
void write_parameters(const std::filesystem::path& path, const learner::PolicyGraph& graph,
                      const PolicyContract& contract);

} // namespace troupe::experiments
