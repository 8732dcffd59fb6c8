#include "learner/agents/blocks_config.hpp"

namespace troupe::learner {

void BlocksConfig::add_members(Members& members) {
  members.push_back({"policy_blocks", &policy_blocks});
  members.push_back({"critic_blocks", &critic_blocks});
  members.push_back({"normalise_observations", &normalise_observations});
  members.push_back({"weight_decay", &weight_decay});
}

std::vector<OptionProblem> BlocksConfig::problems(const std::string& agent,
                                                  const std::vector<std::int64_t>& policy_layers,
                                                  const std::vector<std::int64_t>& critic_layers,
                                                  const AgentSetting& setting) const {
  std::vector<OptionProblem> found;
  const auto one_width = [&](const std::string& network, int blocks,
                             const std::vector<std::int64_t>& layers) {
    if (blocks > 0 && layers.size() != 1)
      found.push_back({network + "_layers", "has " + std::to_string(layers.size())
                                                + " widths; with " + agent + "." + network
                                                + "_blocks " + std::to_string(blocks)
                                                + " it must have one, the width of the blocks"});
  };
  one_width("policy", policy_blocks, policy_layers);
  one_width("critic", critic_blocks, critic_layers);
  if (normalise_observations && setting.picture)
    found.push_back({"normalise_observations", "is true, but the environment gives pixels; it "
                                               "applies to states: leave it out"});
  return found;
}

} // namespace troupe::learner
