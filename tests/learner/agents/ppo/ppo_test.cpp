#include "learner/agents/ppo/ppo.hpp"

#include <cmath>

#include "learner/agents/impala/impala.hpp"
#include "tests/learner/agents/finite_differences.hpp"
#include "tests/learner/agents/parts/actor_critic_fixture.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

PpoConfig small_ppo() {
  return {.layers = {24, 20},
          .rollout = kRollout,
          .batch_size = kLanes,
          .learning_rate = 3e-3,
          .gradient_norm = 0};
}

} // namespace

TEST_CASE("PPO: a bandit's best action is learned from the policy's own samples") {
  PpoConfig config = small_ppo();
  config.entropy.start = 0.001;
  for (const std::int64_t choices : {0, 4}) {
    CAPTURE(choices);
    CHECK(bandit_error(make_ppo_agent(config), choices, 150) < 0.15);
  }
}

TEST_CASE("PPO: stored log probabilities match the frequencies of the samples") {
  for (const std::int64_t choices : {0, 4}) {
    CAPTURE(choices);
    Learning learning(make_ppo_agent(small_ppo()), choices);
    for (int i = 0; i < 5; ++i) // leave the uniform policy
      learning.replica->step_fn(learning.context, learning.batch(static_cast<std::uint64_t>(i)));
    learning.publish();
    const at::Tensor state = uniform({1, 5}, 3).expand({20000, 5}).contiguous();
    const auto [actions, logarithms] = learning.sampled(state);
    if (choices > 0) {
      for (std::int64_t choice = 0; choice < choices; ++choice) {
        const at::Tensor chosen = actions.squeeze(1).eq(choice);
        const double share = chosen.to(at::kDouble).mean().item<double>();
        CHECK(share > 0);
        CHECK(logarithms.index({chosen}).exp().mean().item<double>()
              == doctest::Approx(share).epsilon(0.1));
      }
      continue;
    }
    // The logarithm of a normal density falls with the square of the distance in standard
    // deviations.
    const at::Tensor mean = actions.mean(0);
    const at::Tensor deviation = actions.std(0);
    const at::Tensor wanted =
        -(((actions - mean) / deviation).square() / 2 + deviation.log()).sum(1)
        - std::log(2 * std::acos(-1.0));
    CHECK((wanted - logarithms).abs().mean().item<double>() < 0.05);
  }
}

TEST_CASE("PPO: ratios beyond the clip have no gradient") {
  for (const double sign : {1.0, -1.0}) {
    PpoConfig config = small_ppo();
    config.entropy.start = 0;
    config.value_weight = 0;
    config.normalise_advantages = false;
    config.epochs = config.minibatches = 1;
    Learning learning(make_ppo_agent(config), 4);
    TensorMap batch = learning.batch(1);
    batch["first"].zero_();
    batch["discount"].zero_();
    batch["reward"] = at::full({kLanes, kRollout}, sign * 100);
    // If the action had probability exp(-20), the ratio is large. If it had probability 1, the
    // ratio is about a quarter.
    batch[kLogProbability] = at::full({kLanes, kRollout}, sign > 0 ? -20.0 : 0.0);
    const Metrics metrics = learning.replica->step_fn(learning.context, batch);
    CHECK(metrics.at("gradient_norm") == 0);
    CHECK(metrics.at("clipped") == 1);
    batch["reward"] = -batch["reward"];
    CHECK(learning.replica->step_fn(learning.context, batch).at("gradient_norm") > 0);
  }
}

TEST_CASE("PPO: the age of the acting parameters is reported, and invalid choices are refused") {
  Learning learning(make_ppo_agent(small_ppo()), 4);
  TensorMap batch = learning.batch(1);
  batch[kVersionColumn] = at::full({kLanes, kRollout}, -3, at::kLong);
  CHECK(learning.replica->step_fn(learning.context, batch).at("sample_age") == 3);
  CHECK(learning.replica->step_fn(learning.context, batch).at("sample_age") == 4);
  batch["action"].fill_(4);
  CHECK_THROWS_WITH_AS(learning.replica->step_fn(learning.context, batch),
                       doctest::Contains("from 0 to 3"), std::runtime_error);
  batch.erase(kLogProbability);
  CHECK_THROWS_WITH_AS(learning.replica->step_fn(learning.context, batch),
                       doctest::Contains(kLogProbability), std::invalid_argument);
}

TEST_CASE("PPO: steps that follow no action change nothing") {
  Learning learning(make_ppo_agent(small_ppo()), 0);
  Learning other(make_ppo_agent(small_ppo()), 0);
  TensorMap batch = learning.batch(1);
  learning.replica->step_fn(learning.context, batch);
  const at::Tensor none = batch["first"].narrow(1, 1, kRollout).ne(0);
  REQUIRE(none.any().item<bool>());
  batch["reward"] = batch["reward"].masked_fill(none, 99);
  batch["action"] = batch["action"].masked_fill(none.unsqueeze(2), 0.7);
  batch["discount"] = batch["discount"].masked_fill(none, 0.5);
  batch[kLogProbability] = batch[kLogProbability].masked_fill(none, -9);
  other.replica->step_fn(other.context, batch);
  CHECK(equal(copied(learning.replica->parameters()), copied(other.replica->parameters())));
}

TEST_CASE("PPO and IMPALA: the gradient matches finite differences in float64") {
  PpoConfig ppo = small_ppo();
  ppo.epochs = ppo.minibatches = 1;
  ppo.normalise_advantages = false;
  ppo.clip = 0.999;
  ppo.learning_rate = 1e-12; // keeps the parameters
  ppo.precision = "float64";
  ImpalaConfig impala{.layers = {24, 20},
                      .rollout = kRollout,
                      .batch_size = kLanes,
                      .learning_rate = 1e-12,
                      .gradient_norm = 0,
                      .precision = "float64"};
  for (const std::int64_t choices : {0, 4})
    for (const bool is_ppo : {true, false}) {
      CAPTURE(is_ppo);
      const AgentPtr agent = is_ppo ? make_ppo_agent(ppo) : make_impala_agent(impala);
      const replay::TransitionSpec spec = rollouts(*agent, choices);
      TensorMap batch = random_batch({spec}, 8, 3);
      // Neither the values' targets nor the clipped weights depend on a parameter.
      batch["discount"].zero_();
      if (!is_ppo)
        batch[kLogProbability].fill_(-20);
      const int compared =
          check_gradient(*agent, spec, batch, [](Metrics& metrics, const std::string& parameter) {
            return parameter.starts_with("value") // for states, policy and value share none
                       ? metrics["value_loss"] / 2
                       : metrics["policy_loss"] - 0.01 * metrics["entropy"];
          });
      CHECK(compared >= 20);
    }
}

TEST_CASE("PPO and IMPALA with an LSTM: the gradient matches finite differences in float64") {
  PpoConfig ppo = small_ppo();
  ppo.layers = {10};
  ppo.lstm = 6;
  ppo.epochs = ppo.minibatches = 1;
  ppo.normalise_advantages = false;
  ppo.clip = 0.999;
  ppo.learning_rate = 1e-12; // keeps the parameters
  ppo.precision = "float64";
  const ImpalaConfig impala{.layers = {10},
                            .lstm = 6,
                            .rollout = kRollout,
                            .batch_size = kLanes,
                            .learning_rate = 1e-12,
                            .gradient_norm = 0,
                            .precision = "float64"};
  for (const std::int64_t choices : {0, 4})
    for (const bool is_ppo : {true, false})
      // Policy and value share the LSTM. The metrics contain the loss of only one of them if the
      // other does not depend on it.
      for (const std::string constant : {"value.weight", "policy.weight"}) {
        CAPTURE(choices);
        CAPTURE(is_ppo);
        CAPTURE(constant);
        const AgentPtr agent = is_ppo ? make_ppo_agent(ppo) : make_impala_agent(impala);
        const replay::TransitionSpec spec = rollouts(*agent, choices);
        TensorMap batch = random_batch({spec}, 8, 3);
        batch["discount"].zero_(); // as without an LSTM
        if (!is_ppo)
          batch[kLogProbability].fill_(-20);
        const auto is_of_policy = [&](const std::string& parameter) {
          if (parameter.starts_with("torso") || parameter.starts_with("lstm"))
            return constant == "value.weight";
          return !parameter.starts_with("value");
        };
        const int compared = check_gradient(
            *agent, spec, batch,
            [&](Metrics& metrics, const std::string& parameter) {
              return is_of_policy(parameter) ? metrics["policy_loss"] - 0.01 * metrics["entropy"]
                                             : metrics["value_loss"] / 2;
            },
            [&](const TensorMap& parameters) {
              at::Tensor weight = parameters.at(constant);
              weight.zero_();
            });
        CHECK(compared >= 18);
      }
}

TEST_CASE("PPO and IMPALA: the weight of the entropy follows its schedule, also after a restart") {
  const EntropyConfig falling{.start = 1, .end = 0.25, .steps = 2 * kLanes * kRollout};
  for (const bool is_ppo : {true, false}) {
    CAPTURE(is_ppo);
    const auto agent = [&](const EntropyConfig& entropy) {
      PpoConfig ppo = small_ppo();
      ppo.entropy = entropy;
      const ImpalaConfig impala{
          .layers = {12}, .rollout = kRollout, .batch_size = kLanes, .entropy = entropy};
      return is_ppo ? make_ppo_agent(ppo) : make_impala_agent(impala);
    };
    /// The parameters after `updates` updates with the schedule and one with `entropy`, by one of
    /// `replicas` asynchronous replicas.
    const auto learn = [&](int updates, const EntropyConfig& entropy, int replicas = 1) {
      Learning first(agent(falling), 0);
      for (int i = 0; i < updates; ++i)
        first.replica->step_fn(first.context, first.batch(static_cast<std::uint64_t>(i)));
      Learning second(agent(entropy), 0);
      second.replica->load(copied(first.replica->parameters()),
                           copied(first.replica->optimizer_state()));
      ReplicaContext context(ReplicaAssignment{.num_replicas = replicas, .replicas_in_sync = 1}, 1);
      second.replica->step_fn(context, second.batch(9));
      return copied(second.replica->parameters());
    };
    const double weights[] = {1, 0.625, 0.25, 0.25};
    for (int updates = 0; updates < 4; ++updates) {
      CAPTURE(updates);
      const TensorMap scheduled = learn(updates, falling);
      CHECK(equal(scheduled, learn(updates, {.start = weights[updates]})));
      CHECK_FALSE(equal(scheduled, learn(updates, {.start = 0.5})));
    }
    CHECK(equal(learn(1, falling, 2), learn(1, {.start = 0.25})));
  }
}

TEST_CASE("PPO: an end of the entropy's schedule without its length is refused by key") {
  const EntropyConfig wrong{.start = 0.1, .end = 0.05};
  REQUIRE(wrong.problems("ppo").size() == 1);
  CHECK(wrong.problems("ppo")[0].key == "entropy_end");
  CHECK(wrong.problems("ppo")[0].text.find("ppo.entropy_steps is 0") != std::string::npos);
  CHECK(EntropyConfig{.start = 0.1, .end = 0.05, .steps = 10}.problems("ppo").empty());
  CHECK(EntropyConfig{}.problems("ppo").empty());
}
