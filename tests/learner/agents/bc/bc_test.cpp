// Tests of behaviour cloning alone; agents_test.cpp has the properties of every agent.
#include "learner/agents/bc/bc.hpp"

#include "learner/agents/td3/td3.hpp"
#include "tests/doctest_torch.hpp"
#include "tests/learner/agents/fed_replica.hpp"
#include "tests/learner/agents/finite_differences.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

constexpr std::int64_t kShown = 64;

/// Two continuous numbers, and between them a choice of three.
replay::TransitionSpec mixed() {
  return {.frame = {"state", env::ElementType::float32, {4}},
          .action_size = 3,
          .action_choices = {0, 3, 0}};
}

/// The action is a function of the state.
TensorMap expert(std::uint64_t seed) {
  TensorMap batch = random_batch({mixed()}, kShown, seed);
  const at::Tensor& x = batch["observation"];
  const at::Tensor choice = x.narrow(1, 0, 3).argmax(1).to(at::kFloat);
  batch["action"] =
      at::stack({x.select(1, 3) * 0.5, choice, -x.select(1, 0).clamp(-0.8, 0.8)}, 1).contiguous();
  return batch;
}

} // namespace

TEST_CASE("Behavioural cloning imitates continuous values and choices") {
  at::set_num_threads(1);
  const AgentPtr agent = make_bc_agent({.layers = {32, 32}, .learning_rate = 3e-3});
  ReplicaContext context(nullptr, 3);
  const auto replica = agent->make_replica(mixed());
  replica->build(context);
  for (std::uint64_t i = 0; i < 600; ++i)
    replica->step_fn(context, expert(1000 + 10 * i));
  const auto policy = agent->make_policy(mixed());
  const at::Tensor flat = replica->policy_parameters();
  policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
  const TensorMap shown = expert(5);
  std::vector<float> actions(3 * kShown);
  policy->act(bytes_of(shown.at("observation")), kShown, actions);
  const at::Tensor done = at::from_blob(actions.data(), {kShown, 3}, at::kFloat);
  const at::Tensor difference = (done - shown.at("action")).abs();
  CHECK(difference.select(1, 0).mean().item<double>() < 0.05);
  CHECK(difference.select(1, 2).mean().item<double>() < 0.05);
  CHECK(difference.select(1, 1).eq(0).to(at::kFloat).mean().item<double>() > 0.9);
}

TEST_CASE("The gradient of the imitation loss matches finite differences in float64") {
  const AgentPtr agent =
      make_bc_agent({.layers = {5}, .learning_rate = 1e-12, .precision = "float64"});
  CHECK(check_gradient(*agent, mixed(), expert(5),
                       [](Metrics& metrics, const std::string&) { return metrics["loss"]; })
        >= 8);
}

TEST_CASE("An invalid choice is refused, and the error names its row") {
  const AgentPtr agent = make_bc_agent({.layers = {5}});
  ReplicaContext context(nullptr, 3);
  const auto replica = agent->make_replica(mixed());
  replica->build(context);
  TensorMap batch = expert(1);
  batch["action"][7][1] = 3;
  CHECK_THROWS_WITH_AS(replica->step_fn(context, batch), doctest::Contains("row 7"),
                       std::runtime_error);
}

TEST_CASE("TD3's gradient matches finite differences, and with imitation its policy stays near the "
          "data") {
  const replay::TransitionSpec spec{.frame = {"state", env::ElementType::float32, {4}},
                                    .action_size = 2};
  Td3Config config{.policy_layers = {5},
                   .critic_layers = {5},
                   .policy_learning_rate = 1e-12,
                   .critic_learning_rate = 1e-12,
                   .policy_period = 1,
                   .target_noise = 0,
                   .precision = "float64"};
  // With imitation, the scale of the values is computed from the values and gets no gradient.
  CHECK(check_gradient(
            *make_td3_agent(config), spec, random_batch({spec}, kShown, 5),
            [](Metrics& metrics, const std::string& parameter) {
              return metrics[parameter.starts_with("critic") ? "critic_loss" : "policy_loss"];
            })
        >= 8);
  at::set_num_threads(1);
  const auto distance_after = [&](double imitation) {
    config.imitation = imitation;
    config.policy_learning_rate = config.critic_learning_rate = 3e-3;
    const AgentPtr agent = make_td3_agent(config);
    ReplicaContext context(nullptr, 3);
    const auto replica = agent->make_replica(spec);
    replica->build(context);
    TensorMap batch;
    for (std::uint64_t i = 0; i < 300; ++i) { // the greatest reward is outside the data
      batch = random_batch({spec}, kShown, 1000 + 10 * i);
      batch["action"] = batch["observation"].narrow(1, 0, 2).clamp(-1, 1) * 0.5;
      batch["reward"] = batch["action"].sum(1) + 1;
      batch["discount"] = at::zeros({kShown});
      replica->step_fn(context, batch);
    }
    const auto policy = agent->make_policy(spec);
    const at::Tensor flat = replica->policy_parameters();
    policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
    std::vector<float> actions(2 * kShown);
    policy->act(bytes_of(batch.at("observation")), kShown, actions);
    const at::Tensor done = at::from_blob(actions.data(), {kShown, 2}, at::kFloat);
    return (done - batch.at("action")).square().mean().item<double>();
  };
  const double free = distance_after(0);
  const double near = distance_after(0.1);
  CHECK(near < 0.3 * free);
}
