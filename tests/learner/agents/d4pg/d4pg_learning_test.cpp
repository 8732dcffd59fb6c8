#include "tests/doctest_torch.hpp"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>

#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/finite_differences.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

D4pgConfig toy_config() {
  D4pgConfig config;
  config.policy_layers = {32, 32};
  config.critic_layers = {64, 64};
  config.value_minimum = -2;
  config.value_maximum = 1;
  config.policy_learning_rate = 1e-3;
  config.critic_learning_rate = 3e-3;
  return config;
}

/// One-step episodes: the reward is -(action - wanted)^2, the discount 0.
TensorMap bandit_batch(const at::Tensor& observation, const at::Tensor& wanted,
                       std::uint64_t seed) {
  TensorMap batch;
  const std::int64_t size = observation.size(0);
  batch["observation"] = observation;
  batch["next_observation"] = observation;
  batch["action"] = uniform({size, 1}, seed);
  batch["reward"] = -(batch["action"].select(1, 0) - wanted).square();
  batch["discount"] = at::zeros({size});
  return batch;
}

} // namespace

TEST_CASE("A bandit with reward -(a - 0.3)^2 is learned within 400 updates") {
  const replay::TransitionSpec spec = state_spec(1, 1);
  for (const char* precision : {"float32", "float64"}) {
    D4pgConfig config = toy_config();
    config.precision = precision;
    ReplicaContext context(nullptr, 1);
    const auto replica = built(config, spec, context);
    const at::Tensor observation = at::zeros({64, 1});
    for (std::uint64_t i = 0; i < 400; ++i)
      replica->step_fn(context, bandit_batch(observation, at::full({64}, 0.3), 1000 + i));
    const double action = act(*replica, config, spec, observation.narrow(0, 0, 1)).item<double>();
    CHECK(action == doctest::Approx(0.3).epsilon(0.25));
  }
}

TEST_CASE("An action that depends on the state is learned") {
  const replay::TransitionSpec spec = state_spec(2, 1);
  const D4pgConfig config = toy_config();
  ReplicaContext context(nullptr, 1);
  const auto replica = built(config, spec, context);
  const auto wanted = [](const at::Tensor& state) { return 0.6 * state.select(1, 0); };
  for (std::uint64_t i = 0; i < 1200; ++i) {
    const at::Tensor state = uniform({64, 2}, 5000 + i);
    replica->step_fn(context, bandit_batch(state, wanted(state), 9000 + i));
  }
  const at::Tensor probe = uniform({100, 2}, 3);
  const at::Tensor error = act(*replica, config, spec, probe).select(1, 0) - wanted(probe);
  CHECK(error.square().mean().sqrt().item<double>() < 0.15);
}

TEST_CASE("Values propagate to earlier states through the target networks") {
  // Two states: state 0 has no reward and leads to state 1, where the reward is 1 and the episode
  // ends. Q of state 0 is then the discount.
  const replay::TransitionSpec spec = state_spec(1, 1);
  D4pgConfig config = toy_config();
  config.target_update = 0.05;
  ReplicaContext context(nullptr, 1);
  const auto replica = built(config, spec, context);
  TensorMap batch;
  batch["observation"] = at::arange(64, at::kFloat).remainder(2).view({64, 1});
  batch["next_observation"] = at::ones({64, 1});
  batch["reward"] = batch["observation"].view({64}).clone();
  batch["discount"] = 0.5 * (1 - batch["reward"]);
  Metrics metrics;
  for (std::uint64_t i = 0; i < 600; ++i) {
    batch["action"] = uniform({64, 1}, i);
    metrics = replica->step_fn(context, batch);
  }
  CHECK(metrics["q_mean"] == doctest::Approx(0.75).epsilon(0.05)); // (0.5 + 1) / 2
}

TEST_CASE("An action that depends on the brightness is learned from pixels") {
  const replay::TransitionSpec spec = pixel_spec(40, 1, 1);
  D4pgConfig config = toy_config();
  config.encoder_channels = 8;
  config.feature_size = 16;
  ReplicaContext context(nullptr, 1);
  const auto replica = built(config, spec, context);
  const auto images = [](const at::Tensor& brightness) {
    return (brightness.view({-1, 1, 1, 1}).expand({brightness.size(0), 1, 40, 40}) * 255)
        .to(at::kByte)
        .contiguous();
  };
  for (std::uint64_t i = 0; i < 400; ++i) {
    const at::Tensor brightness = uniform({32}, 100 + i, 0, 1);
    replica->step_fn(context, bandit_batch(images(brightness), brightness - 0.5, 900 + i));
  }
  const at::Tensor probe = at::linspace(0, 1, 11);
  const at::Tensor error = act(*replica, config, spec, images(probe)).select(1, 0) - (probe - 0.5);
  CHECK(error.square().mean().sqrt().item<double>() < 0.15);
}

TEST_CASE("The gradients of a whole update match finite differences, with the saturation penalty") {
  for (const bool pixels : {false, true}) {
    CAPTURE(pixels);
    D4pgConfig config = small_config();
    config.policy_layers = {12, 10};
    config.critic_layers = {12, 10};
    config.encoder_channels = 4;
    config.feature_size = 8;
    config.reward_scale = 2;
    config.saturation_penalty = 3;
    config.policy_learning_rate = config.critic_learning_rate = 1e-12; // keeps the parameters
    config.precision = "float64";
    const replay::TransitionSpec spec = pixels ? pixel_spec(40, 3, 2) : state_spec(5, 2);
    TensorMap batch = random_batch(spec, 6, 5);
    batch["weight"] = uniform({6}, 9, 0.2, 2);
    double penalty = 0;
    const int compared = check_gradient(
        *make_d4pg_agent(config), spec, batch,
        [&](Metrics& metrics, const std::string& parameter) {
          penalty = metrics["policy_loss"] + metrics["q_mean"];
          return metrics[parameter.starts_with("policy.") ? "policy_loss" : "critic_loss"];
        },
        [](const TensorMap& parameters) { // outputs beyond 1.5 in both directions
          at::Tensor bias = parameters.at("policy.output.bias");
          bias[0] = 1.9;
          bias[1] = -1.8;
        });
    CHECK(compared >= (pixels ? 40 : 28));
    CHECK(penalty > 0.2);
  }
}
