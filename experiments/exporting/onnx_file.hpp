#pragma once

#include <filesystem>

#include "experiments/exporting/contract.hpp"
#include "learner/policy_graph/policy_graph.hpp"

namespace troupe::experiments {

/// Writes the policy behind its contract as ONNX (opset 17, IR version 8). Inputs: the arrays of
/// the contract by name, [batch, …] with their history, and "memory" [batch, state size] of a
/// policy that has one; outputs: "action" [batch, action size] and "next_memory". The contract is
/// the metadata "contract". Throws std::runtime_error naming path and reason.
void write_onnx(const std::filesystem::path& path, const learner::PolicyGraph& graph,
                const PolicyContract& contract);

} // namespace troupe::experiments
