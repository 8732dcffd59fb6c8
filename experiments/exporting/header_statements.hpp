#pragma once

#include <cstdint>
#include <string>

#include "experiments/exporting/contract.hpp"
#include "learner/policy_graph/policy_graph.hpp"
#include "learner/policy_graph/weight_type.hpp"

namespace troupe::experiments {

/// The code of Policy::act() in an exported header.
struct HeaderStatements {
  std::string text;
  std::string scratch;     // declarations of members that convolutions need
  std::int64_t widest = 0; // size of a buffer between layers, in numbers
};
HeaderStatements header_statements(const learner::PolicyGraph& graph,
                                   const PolicyContract& contract, learner::WeightType type);

/// Adds the weights of a layer under the names w<i>, s<i> (only for int8), b<i> and g<i>.
void add_layer_numbers(std::string& out, learner::GraphLayer layer, std::size_t number,
                       learner::WeightType type);

} // namespace troupe::experiments
