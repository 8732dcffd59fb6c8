#include "learner/agents/r2d2/r2d2.hpp"

#include "learner/acting/best_actions.hpp"
#include "learner/agents/parts/lstm.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/finite_differences.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

R2d2Config small_r2d2() {
  return {.layers = {12},
          .lstm = 8,
          .burn_in = 2,
          .length = 4,
          .period = 4,
          .learning_rate = 3e-3,
          .target_period = 10,
          .batch_size = 32};
}

replay::TransitionSpec remembering(const Agent& agent, int n_step = 1) {
  return stored_by(agent, {.frame = {"state", env::ElementType::float32, {3}},
                           .action_size = 1,
                           .action_choices = {3},
                           .n_step = n_step});
}

TensorMap sequences(const Agent& agent, std::uint64_t seed, std::int64_t batch = 32) {
  TensorMap made = random_sequences(remembering(agent), batch, seed);
  made[kMemory].select(2, made[kMemory].size(2) - 1).fill_(1); // the last choice was 0
  return made;
}

} // namespace

TEST_CASE("R2D2: targets are n-step sums that stop at the end of the sequence and of the episode") {
  TensorMap batch;
  batch["reward"] = at::tensor({1.0, 2.0, 4.0, 8.0}).view({1, 4});
  batch["discount"] = at::tensor({1.0, 1.0, 1.0, 1.0}).view({1, 4});
  batch["first"] = at::zeros({1, 5}, at::kByte);
  const at::Tensor values = at::tensor({10.0, 20.0, 30.0, 40.0, 50.0}).view({1, 5});
  const auto targets = [&](int n) {
    const at::Tensor made = sequence_targets(batch, values, n, 0.5).contiguous();
    return std::vector<double>(made.const_data_ptr<double>(), made.const_data_ptr<double>() + 4);
  };
  CHECK(targets(1) == std::vector<double>{11, 17, 24, 33});
  CHECK(targets(2) == std::vector<double>{9.5, 14, 20.5, 33});
  CHECK(targets(9)
        == std::vector<double>{1 + 1 + 1 + 1 + 50 / 16.0, 2 + 2 + 2 + 50 / 8.0, 4 + 4 + 50 / 4.0,
                               33});
  batch["discount"][0][1] = 0; // a termination: rows 3 and 4 belong to another episode
  batch["first"][0][3] = 1;
  CHECK(targets(3) == std::vector<double>{2, 2, 30, 33});
}

TEST_CASE("R2D2: the gradient matches finite differences in float64") {
  for (const bool rescale : {true, false})
    for (const std::int64_t burn_in : {0, 2}) {
      CAPTURE(rescale);
      CAPTURE(burn_in);
      R2d2Config config = small_r2d2();
      config.burn_in = burn_in;
      config.rescale = rescale;
      config.gradient_norm = 0;
      config.precision = "float64";
      config.learning_rate = 1e-12; // keeps the parameters
      const AgentPtr agent = make_r2d2_agent(config);
      TensorMap batch = sequences(*agent, 5, 6);
      batch["discount"].zero_(); // later states have no gradient, but would change the differences
      if (burn_in > 0)           // nor has the burn-in
        batch["first"].select(1, burn_in).fill_(1);
      const int compared = check_gradient(
          *agent, remembering(*agent), batch,
          [](Metrics& metrics, const std::string&) { return metrics["critic_loss"]; });
      CHECK(compared >= 16);
    }
}

TEST_CASE("R2D2: a burn-in updates the recurrent state unless an episode begins after it") {
  const AgentPtr agent = make_r2d2_agent(small_r2d2());
  const auto loss = [&](const TensorMap& batch) {
    ReplicaContext context(nullptr, 3);
    const auto replica = agent->make_replica(remembering(*agent));
    replica->build(context);
    return replica->step_fn(context, batch).at("critic_loss");
  };
  TensorMap batch = sequences(*agent, 7);
  batch["first"].zero_();
  const double before = loss(batch);
  const auto differs = [&](const std::string& name, std::int64_t row) {
    TensorMap other = copied(batch);
    at::Tensor changed = other[name].select(1, row);
    if (name == "action")
      changed.copy_(2 - changed);
    else
      (name == kMemory ? changed.narrow(1, 0, 16) : changed).add_(0.5);
    return loss(other) != before;
  };
  CHECK(differs("observation", 0)); // through the memory
  CHECK(differs("action", 1));      // the choice before row 2
  CHECK_FALSE(differs("reward", 1));
  CHECK(differs("reward", 2));
  CHECK(differs(kMemory, 0));
  CHECK_FALSE(differs(kMemory, 1));     // stored for later steps, but not used
  batch["first"].select(1, 2).fill_(1); // an episode begins where learning begins
  const double alone = loss(batch);
  TensorMap other = copied(batch);
  other["observation"].narrow(1, 0, 2).add_(0.5);
  other[kMemory].select(1, 0).narrow(1, 0, 16).add_(0.5);
  CHECK(loss(other) == alone);
}

TEST_CASE("R2D2: a cue from the first step is remembered until the choice that depends on it") {
  R2d2Config config = small_r2d2();
  config.burn_in = 0;
  const AgentPtr agent = make_r2d2_agent(config);
  ReplicaContext context(nullptr, 3);
  at::set_num_threads(1);
  const auto replica = agent->make_replica(remembering(*agent));
  replica->build(context);
  // Row 0 shows one of two signs. In row 3, the choice that matches the sign is rewarded.
  const auto shown = [](std::uint64_t seed, std::int64_t rows) {
    return uniform({rows}, seed).gt(0).to(at::kFloat);
  };
  for (std::uint64_t i = 0; i < 500; ++i) {
    TensorMap batch = sequences(*agent, 100 * i);
    const at::Tensor sign = shown(i, 32);
    batch["observation"].zero_().select(1, 0).select(1, 0).copy_(2 * sign - 1);
    batch["first"].zero_().select(1, 0).fill_(1);
    batch[kMemory].zero_();
    batch["discount"].zero_();
    batch["reward"].zero_().select(1, 3).copy_(
        batch["action"].select(1, 3).squeeze(1).eq(sign + 1).to(at::kFloat));
    replica->step_fn(context, batch);
  }
  const auto policy = agent->make_policy(remembering(*agent));
  const at::Tensor flat = replica->policy_parameters();
  policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
  std::vector<float> state(2 * static_cast<std::size_t>(policy->state_size()));
  std::vector<float> actions(2);
  for (int t = 0; t < 4; ++t) {
    at::Tensor seen = at::zeros({2, 3});
    if (t == 0)
      seen.select(1, 0).copy_(at::tensor({-1.0F, 1.0F}));
    policy->act(bytes_of(seen), 2, actions, state);
  }
  CHECK(actions == std::vector<float>{1, 2});
  CHECK(state.back() == 3); // the last choice, plus 1
}

TEST_CASE(
    "R2D2: along recorded steps, the memory holds the recorded choice instead of the best one") {
  const AgentPtr agent = make_r2d2_agent(small_r2d2());
  const replay::TransitionSpec spec = remembering(*agent);
  ReplicaContext context(nullptr, 3);
  const auto replica = agent->make_replica(spec);
  replica->build(context);
  const auto policy = agent->make_policy(spec);
  BestActions best_actions(agent->make_policy(spec), spec);
  const at::Tensor flat = replica->policy_parameters();
  for (Policy* one : {policy.get(), static_cast<Policy*>(&best_actions)})
    one->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
  const at::Tensor seen = uniform({1, 3}, 4);
  const std::byte* const frame = bytes_of(seen).data();
  std::vector<float> before(static_cast<std::size_t>(policy->state_size()), 0.5F);
  before.back() = 2; // the last choice was 1
  std::vector<float> wanted = before;
  std::vector<float> best(1);
  policy->act(bytes_of(seen), 1, best, wanted);
  CHECK(wanted != before);
  CHECK(wanted.back() == best[0] + 1);
  for (Policy* one : {policy.get(), static_cast<Policy*>(&best_actions)})
    for (const float choice : {0.F, 1.F, 2.F}) {
      std::vector<float> state = before;
      one->follow({.frames = {&frame, 1}, .frame_bytes = 12, .batch = 1, .state = state},
                  {&choice, 1});
      wanted.back() = choice + 1;
      CHECK(state == wanted);
    }
}

TEST_CASE("R2D2: the priority of a sequence lies between its mean and its largest error") {
  for (const double share : {0.0, 0.9, 1.0}) {
    R2d2Config config = small_r2d2();
    config.largest_share = share;
    config.rescale = false;
    const AgentPtr agent = make_r2d2_agent(config);
    ReplicaContext context(nullptr, 3);
    const auto replica = agent->make_replica(remembering(*agent));
    replica->build(context);
    TensorMap batch = sequences(*agent, 9, 2);
    batch["first"].zero_();
    batch["discount"].zero_();
    batch["reward"].zero_();
    batch["reward"][0][5] = 1000; // of 4 steps that count
    replica->step_fn(context, batch);
    CHECK_FALSE(replica->priorities().defined());
    batch["weight"] = at::ones({2});
    replica->step_fn(context, batch);
    const at::Tensor priorities = replica->priorities();
    CHECK(priorities[0].item<double>()
          == doctest::Approx(share * 1000 + (1 - share) * 250).epsilon(0.01));
    CHECK(priorities[1].item<double>() < 5);
  }
}
