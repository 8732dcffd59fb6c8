#pragma once

#include <cstdint>
#include <string>

#include "experiments/exporting/contract.hpp"
#include "learner/policy_graph/policy_graph.hpp"
#include "learner/policy_graph/weight_type.hpp"

namespace troupe::experiments {

/// What Policy::act() of an exported header consists of.
struct HeaderStatements {
  std::string text;
  std::string scratch;     // members that convolutions need
  std::int64_t widest = 0; // numbers of a buffer between layers
};
HeaderStatements header_statements(const learner::PolicyGraph& graph,
                                   const PolicyContract& contract, learner::WeightType type);

/// Weights of a layer under the names w<i>, s<i> (int8 alone), b<i>, g<i>.
void add_layer_numbers(std::string& out, learner::GraphLayer layer, std::size_t number,
                       learner::WeightType type);

} // namespace troupe::experiments
