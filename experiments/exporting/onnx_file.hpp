#pragma once

#include <filesystem>

#include "experiments/exporting/contract.hpp"
#include "learner/policy_graph/policy_graph.hpp"

namespace troupe::experiments {

/// Writes the policy behind its contract as ONNX (opset 17, IR version 8). The inputs are the
/// contract's arrays by name, [batch, …] with their history, and for a policy with a memory also
/// "memory" [batch, state size]. The outputs are "action" [batch, action size] and "next_memory".
/// The metadata "contract" contains the contract. Throws std::runtime_error with path and reason.
void write_onnx(const std::filesystem::path& path, const learner::PolicyGraph& graph,
                const PolicyContract& contract);

} // namespace troupe::experiments
