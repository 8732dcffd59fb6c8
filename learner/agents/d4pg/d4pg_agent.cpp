#include "learner/agents/agent.hpp"
#include "learner/agents/d4pg/d4pg.hpp"
#include "learner/agents/d4pg/d4pg.pb.h"
#include "learner/agents/parts/deterministic_policy.hpp"

namespace troupe::learner {
namespace {

Members members(D4pgConfig& config) {
  Members all{{"policy_layers", &config.policy_layers},
              {"critic_layers", &config.critic_layers},
              {"layer_norm", &config.layer_norm},
              {"atoms", &config.atoms},
              {"value_minimum", &config.value_minimum},
              {"value_maximum", &config.value_maximum},
              {"policy_learning_rate", &config.policy_learning_rate},
              {"critic_learning_rate", &config.critic_learning_rate},
              {"target_update", &config.target_update},
              {"target_period", &config.target_period},
              {"gradient_norm", &config.gradient_norm},
              {"action_gradient_norm", &config.action_gradient_norm},
              {"saturation_penalty", &config.saturation_penalty},
              {"reward_scale", &config.reward_scale},
              {"encoder", &config.encoder},
              {"encoder_channels", &config.encoder_channels},
              {"feature_size", &config.feature_size},
              {"shift_pixels", &config.shift_pixels},
              {"precision", &config.precision},
              {"batch_size", &config.batch_size}};
  config.blocks.add_members(all);
  config.noise.add_members(all);
  return all;
}

std::vector<OptionProblem> problems(const D4pgConfig& config, const AgentSetting& setting) {
  std::vector<OptionProblem> found = config.noise.problems("d4pg");
  const auto complain = [&](const std::string& key, double value, const std::string& rule) {
    found.push_back({key, "is " + number_text(value) + "; it must be " + rule});
  };
  if (config.value_minimum >= config.value_maximum)
    complain("value_minimum", config.value_minimum,
             "below d4pg.value_maximum, " + number_text(config.value_maximum));
  for (OptionProblem& problem :
       config.blocks.problems("d4pg", config.policy_layers, config.critic_layers, setting))
    found.push_back(std::move(problem));
  if (!setting.picture)
    return found;
  for (OptionProblem& problem :
       encoder_problems("d4pg", config.encoder, config.shift_pixels, *setting.picture))
    found.push_back(std::move(problem));
  return found;
}

class D4pgAgent : public Agent {
public:
  explicit D4pgAgent(D4pgConfig config) : config_(std::move(config)) {}

  std::int64_t batch_size() const override { return config_.batch_size; }
  std::unique_ptr<Policy> make_policy(const replay::TransitionSpec& transitions) const override {
    return make_d4pg_policy(config_, {transitions});
  }
  std::unique_ptr<Replica> make_replica(const replay::TransitionSpec& transitions) const override {
    return make_d4pg(config_, {transitions});
  }

private:
  D4pgConfig config_;
};

} // namespace

AgentPtr make_d4pg_agent(const D4pgConfig& config) {
  return std::make_shared<const D4pgAgent>(config);
}

AgentKind d4pg_agent() {
  return agent_kind<D4pgConfig>(
      {.name = "d4pg",
       .help = "distributed distributional DDPG (Barth-Maron et al. 2018): continuous actions",
       .pixels = true,
       .metrics = {"critic_loss", "policy_loss", "q_mean", "saturation", "gradient_norm"},
       .options = agents::D4pg::descriptor()},
      members, problems, make_d4pg_agent);
}

} // namespace troupe::learner
