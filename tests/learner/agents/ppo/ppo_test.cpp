#include "learner/agents/ppo/ppo.hpp"

#include <cmath>

#include "learner/agents/parts/actor_critic.hpp"
#include "learner/agents/parts/advantages.hpp"
#include "tests/doctest_torch.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

constexpr std::int64_t kLanes = 32;
constexpr std::int64_t kRollout = 4;

PpoConfig small_ppo() {
  return {.layers = {24, 20},
          .rollout = kRollout,
          .batch_size = kLanes,
          .learning_rate = 3e-3,
          .gradient_norm = 0};
}

/// States of 5 numbers; one choice of `choices`, or two continuous numbers.
replay::TransitionSpec rollouts(std::int64_t choices, const PpoConfig& config) {
  replay::TransitionSpec spec{.frame = {"state", env::ElementType::float32, {5}}, .action_size = 2};
  if (choices > 0) {
    spec.action_size = 1;
    spec.action_choices = {choices};
  }
  return stored_by(*make_ppo_agent(config), spec);
}

/// A learner and what acts with its parameters.
struct Learning {
  Learning(const PpoConfig& config, std::int64_t choices)
      : spec(rollouts(choices, config)),
        replica(make_ppo_agent(config)->make_replica(spec)),
        policy(make_ppo_agent(config)->make_policy(spec)) {
    at::set_num_threads(1); // tests run side by side
    replica->build(context);
    publish();
  }
  void publish() {
    const at::Tensor flat = replica->policy_parameters();
    policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
  }
  /// Samples actions [n, action size] for states [n, 5]; and the logarithms of their probabilities.
  std::pair<at::Tensor, at::Tensor> sampled(const at::Tensor& states) {
    const std::int64_t n = states.size(0);
    at::Tensor actions = at::empty({n, spec.action_size});
    at::Tensor logarithms = at::empty({n});
    std::vector<const std::byte*> frames;
    std::vector<std::byte*> extras;
    for (std::int64_t i = 0; i < n; ++i) {
      frames.push_back(bytes_of(states).data() + static_cast<std::size_t>(i) * 5 * sizeof(float));
      extras.push_back(reinterpret_cast<std::byte*>(logarithms.mutable_data_ptr<float>() + i));
    }
    const std::vector<ActingRandom*> randoms(static_cast<std::size_t>(n), &random);
    policy->explore({frames, 5 * sizeof(float), n}, {.random = randoms, .extras = extras},
                    {actions.mutable_data_ptr<float>(), static_cast<std::size_t>(actions.numel())});
    return {actions, logarithms};
  }
  TensorMap batch(std::uint64_t seed) { return random_batch({spec}, kLanes, seed); }

  replay::TransitionSpec spec;
  ReplicaContext context{nullptr, 1};
  std::unique_ptr<Replica> replica;
  std::unique_ptr<Policy> policy;
  ActingRandom random{std::mt19937_64(7)};
};

} // namespace

TEST_CASE("PPO: advantages are the sums of their definition, within their episode") {
  constexpr double kDiscount = 0.9;
  constexpr double kLambda = 0.8;
  const PpoConfig config{.rollout = 12};
  const TensorMap batch = random_batch({rollouts(0, config)}, 9, 4);
  const at::Tensor values = uniform({9, 13}, 8).to(at::kDouble);
  const Advantages made = generalized_advantages(batch, values, kDiscount, kLambda);
  const auto of = [&](const char* name, std::int64_t row, std::int64_t t) {
    return batch.at(name)[row][t].item<double>();
  };
  int steps = 0;
  for (std::int64_t row = 0; row < 9; ++row)
    for (std::int64_t t = 0; t < 12; ++t) {
      const double got = made.advantage[row][t].item<double>();
      if (of("first", row, t + 1) != 0) {
        CHECK(got == 0);
        continue;
      }
      ++steps;
      double sum = 0;
      double weight = 1;
      for (std::int64_t k = t; k < 12 && of("first", row, k + 1) == 0; ++k) {
        const double next = kDiscount * of("discount", row, k);
        sum += weight
               * (of("reward", row, k) + next * values[row][k + 1].item<double>()
                  - values[row][k].item<double>());
        weight *= next * kLambda;
      }
      CHECK(got == doctest::Approx(sum));
      CHECK(made.value[row][t].item<double>()
            == doctest::Approx(sum + values[row][t].item<double>()));
    }
  CHECK(counting_steps(batch).sum().item<double>() == steps);
  CHECK(steps > 60);
}

TEST_CASE("PPO: a bandit's best action is learnt from the policy's own samples") {
  for (const std::int64_t choices : {0, 4}) {
    CAPTURE(choices);
    PpoConfig config = small_ppo();
    config.entropy = 0.001;
    Learning learning(config, choices);
    for (std::uint64_t update = 0; update < 150; ++update) {
      TensorMap batch = learning.batch(update);
      const auto [actions, logarithms] = learning.sampled(
          batch["observation"].narrow(1, 0, kRollout).reshape({-1, 5}).contiguous());
      batch["first"].zero_();
      batch["discount"].zero_();
      batch["action"] = actions.view(batch["action"].sizes());
      batch[kLogProbability] = logarithms.view({kLanes, kRollout});
      batch["reward"] = choices > 0 ? batch["action"].squeeze(2).eq(2).to(at::kFloat)
                                    : -(batch["action"] - 0.3).square().sum(2);
      const Metrics metrics = learning.replica->step_fn(learning.context, batch);
      CHECK(std::abs(metrics.at("divergence")) < 0.5);
      learning.publish();
    }
    at::Tensor actions = at::empty({20, learning.spec.action_size});
    learning.policy->act(
        bytes_of(uniform({20, 5}, 5)), 20,
        {actions.mutable_data_ptr<float>(), static_cast<std::size_t>(actions.numel())});
    CHECK((actions - (choices > 0 ? 2 : 0.3)).square().mean().sqrt().item<double>() < 0.15);
  }
}

TEST_CASE("PPO: samples have the probabilities that are stored with them") {
  for (const std::int64_t choices : {0, 4}) {
    CAPTURE(choices);
    Learning learning(small_ppo(), choices);
    for (int i = 0; i < 5; ++i) // away from a uniform policy
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
    // Of a normal distribution the logarithm falls with the square of the distance in deviations.
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
    config.entropy = 0;
    config.value_weight = 0;
    config.normalise_advantages = false;
    config.epochs = config.minibatches = 1;
    Learning learning(config, 4);
    TensorMap batch = learning.batch(1);
    batch["first"].zero_();
    batch["discount"].zero_();
    batch["reward"] = at::full({kLanes, kRollout}, sign * 100);
    // Acted with probability exp(-20): the ratio is large. Acted with 1: it is about a quarter.
    batch[kLogProbability] = at::full({kLanes, kRollout}, sign > 0 ? -20.0 : 0.0);
    const Metrics metrics = learning.replica->step_fn(learning.context, batch);
    CHECK(metrics.at("gradient_norm") == 0);
    CHECK(metrics.at("clipped") == 1);
    batch["reward"] = -batch["reward"];
    CHECK(learning.replica->step_fn(learning.context, batch).at("gradient_norm") > 0);
  }
}

TEST_CASE("PPO: the age of the parameters that acted is told, choices out of range are refused") {
  Learning learning(small_ppo(), 4);
  TensorMap batch = learning.batch(1);
  batch[kVersionColumn] = at::full({kLanes, kRollout}, -3, at::kLong);
  CHECK(learning.replica->step_fn(learning.context, batch).at("parameter_lag") == 3);
  CHECK(learning.replica->step_fn(learning.context, batch).at("parameter_lag") == 4);
  batch["action"].fill_(4);
  CHECK_THROWS_WITH_AS(learning.replica->step_fn(learning.context, batch),
                       doctest::Contains("from 0 to 3"), std::runtime_error);
  batch.erase(kLogProbability);
  CHECK_THROWS_WITH_AS(learning.replica->step_fn(learning.context, batch),
                       doctest::Contains(kLogProbability), std::invalid_argument);
}

TEST_CASE("PPO: steps that no action led to change nothing") {
  Learning learning(small_ppo(), 0);
  Learning other(small_ppo(), 0);
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
