#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learner/agents/agent.hpp"

namespace troupe::learner {

/// Residual blocks that replace plain layers, and how they are trained (SimBa, Lee et al. 2025).
/// Agents with a policy and a critic share these keys.
struct BlocksConfig {
  int policy_blocks = 0; // 0: plain layers
  int critic_blocks = 0;
  bool normalise_observations = false; // of states only
  double weight_decay = 0;             // decoupled, for policy and critic

  void add_members(Members& members);
  std::vector<OptionProblem> problems(const std::string& agent,
                                      const std::vector<std::int64_t>& policy_layers,
                                      const std::vector<std::int64_t>& critic_layers,
                                      const AgentSetting& setting) const;
};

} // namespace troupe::learner
