// The gradients of SAC and TD3 with plain networks; spherical_sac_test.cpp has those of SimbaV2.
#include "learner/agents/learners/state_actor_critic.hpp"

#include <cmath>

#include "learner/agents/sac/sac.hpp"
#include "learner/agents/td3/td3.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/finite_differences.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

const replay::TransitionSpec kPlain = state_spec(5, 2);

TensorMap weighted_batch() {
  TensorMap batch = random_batch(kPlain, 6, 5);
  batch["weight"] = uniform({6}, 9, 0.2, 2);
  return batch;
}

} // namespace

TEST_CASE("SAC: the gradients of critics, policy and temperature match finite differences") {
  const SacConfig config{.policy_layers = {12, 10},
                         .critic_layers = {12, 10},
                         .policy_learning_rate = 1e-12, // keeps the parameters
                         .critic_learning_rate = 1e-12,
                         .temperature_learning_rate = 1e-12,
                         .temperature = 0.3,
                         .target_entropy = -0.5,
                         .precision = "float64"};
  bool has_temperature = false;
  const int compared = check_gradient(*make_sac_agent(config), kPlain, weighted_batch(),
                                      [&](Metrics& metrics, const std::string& parameter) {
                                        if (parameter.starts_with("critic"))
                                          return metrics["critic_loss"];
                                        if (parameter.starts_with("policy"))
                                          return metrics["policy_loss"];
                                        has_temperature = true;
                                        return std::log(metrics["temperature"])
                                               * (metrics["entropy"] - 2 * config.target_entropy);
                                      });
  CHECK(compared >= 38);
  CHECK(has_temperature);
}

TEST_CASE("TD3 with and without imitation: the gradients match finite differences in float64") {
  for (const double imitation : {0.0, 2.5}) {
    CAPTURE(imitation);
    const Td3Config config{.policy_layers = {12, 10},
                           .critic_layers = {12, 10},
                           .policy_learning_rate = 1e-12, // keeps the parameters
                           .critic_learning_rate = 1e-12,
                           .policy_period = 1,
                           .imitation = imitation,
                           .precision = "float64"};
    const AgentPtr agent = make_td3_agent(config);
    TensorMap batch = weighted_batch();
    // Equal states have equal values, so the mean size of the values is the size of their mean. It
    // scales the values, and has no gradient.
    batch["observation"] = batch["observation"].narrow(0, 0, 1).expand({6, 5}).contiguous();
    ReplicaContext context(nullptr, 3); // as in check_gradient()
    const auto replica = agent->make_replica(kPlain);
    replica->build(context);
    const double value = replica->step_fn(context, batch).at("q_mean");
    REQUIRE(std::abs(value) > 1e-3);
    const int compared =
        check_gradient(*agent, kPlain, batch, [&](Metrics& metrics, const std::string& parameter) {
          if (parameter.starts_with("critic"))
            return metrics["critic_loss"];
          if (imitation == 0)
            return metrics["policy_loss"];
          const double distance = metrics["policy_loss"] + std::copysign(imitation, value);
          return distance - imitation / std::abs(value) * metrics["q_mean"];
        });
    CHECK(compared >= 36);
  }
}
