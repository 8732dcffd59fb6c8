#include "learner/agents/mrq/mrq.hpp"

#include <cmath>

#include "learner/agents/predictive/sequence_returns.hpp"
#include "learner/nn/two_hot.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/finite_differences.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

MrqConfig small_mrq() {
  return {.features = {.encoder_layers = {9},
                       .state_features = 8,
                       .action_features = 5,
                       .pair_layers = {9},
                       .pair_features = 9,
                       .encoder_channels = 3,
                       .shift_pixels = 0,
                       .horizon = 3},
          .policy_layers = {8},
          .critic_layers = {10},
          .n_step = 2,
          .period = 1,
          .target_noise = 0,
          .batch_size = 6};
}

replay::TransitionSpec of_states(const Agent& agent) {
  return stored_by(agent, state_spec(4, 2));
}

replay::TransitionSpec of_pixels(const Agent& agent) {
  return stored_by(agent, pixel_spec(40, 2, 2));
}

std::unique_ptr<Replica> fresh(const Agent& agent, const replay::TransitionSpec& spec,
                               ReplicaContext& context) {
  at::set_num_threads(1); // tests run in parallel
  auto replica = agent.make_replica(spec);
  replica->build(context);
  return replica;
}

} // namespace

TEST_CASE("MR.Q: a reward is encoded in two bins whose mean is the reward") {
  const at::Tensor reward = at::tensor({0.0, 1.0, -3.7, 500.0, 1e9}, at::kDouble);
  const at::Tensor shares = two_hot(reward);
  CHECK(shares.sizes() == at::IntArrayRef({5, kRewardBins}));
  CHECK(at::allclose(shares.sum(1), at::ones({5}, at::kDouble)));
  CHECK(shares.ge(0).all().item<bool>());
  CHECK(shares.gt(0).sum(1).le(2).all().item<bool>());
  const at::Tensor grid = at::linspace(-10, 10, kRewardBins, at::kDouble);
  const at::Tensor bins = grid.sign() * grid.abs().expm1();
  const at::Tensor means = at::mv(shares, bins);
  CHECK(at::allclose(means.narrow(0, 0, 4), reward.narrow(0, 0, 4)));
  CHECK(means[4].item<double>() == doctest::Approx(std::expm1(10.0))); // the last bin
}

TEST_CASE("MR.Q: returns stop at a time limit and at a termination") {
  TensorMap batch;
  batch["reward"] = at::tensor({1.0, 2.0, 4.0, 8.0}).view({1, 4});
  batch["discount"] = at::ones({1, 4}, at::kDouble);
  batch["first"] = at::zeros({1, 5}, at::kByte);
  const auto returns = [&](int n) {
    const SequenceReturns made = sequence_returns(batch, n, 0.5, at::kDouble);
    return std::vector<double>{made.reward.item<double>(), made.discount.item<double>(),
                               static_cast<double>(made.last.item<std::int64_t>())};
  };
  CHECK(returns(1) == std::vector<double>{1, 0.5, 1});
  CHECK(returns(3) == std::vector<double>{3, 0.125, 3});
  batch["first"][0][3] = 1; // the time limit: rows 3 and 4 belong to another episode
  CHECK(returns(3) == std::vector<double>{2, 0.25, 2});
  CHECK(returns(1) == std::vector<double>{1, 0.5, 1});
  batch["discount"][0][1] = 0; // a termination
  CHECK(returns(4) == std::vector<double>{2, 0, 2});
  batch["first"][0][1] = 1; // the sequence begins with the last row of an episode
  CHECK(returns(3) == std::vector<double>{0, 1, 0});
}

TEST_CASE(
    "MR.Q: the gradients of encoder, critics and policy match finite differences in float64") {
  MrqConfig config = small_mrq();
  config.precision = "float64";
  config.weight_decay = 0;
  config.preactivation_weight = 0.3;
  config.features.contrast_temperature = 0.7;
  config.features.termination_weight = 0.4;
  config.encoder_learning_rate = config.critic_learning_rate = config.policy_learning_rate = 1e-12;
  const AgentPtr agent = make_mrq_agent(config);
  const auto loss_of = [](Metrics& metrics, const std::string& parameter) {
    return parameter.starts_with("critic")   ? metrics["critic_loss"]
           : parameter.starts_with("policy") ? metrics["policy_loss"]
                                             : metrics["encoder_loss"];
  };
  TensorMap batch = random_sequences(of_states(*agent), 6, 5);
  batch["weight"] = uniform({6}, 9, 0.2, 2);
  CHECK(check_gradient(*agent, of_states(*agent), batch, loss_of) > 40);
  const TensorMap pictures = random_sequences(of_pixels(*agent), 3, 5);
  CHECK(check_gradient(*agent, of_pixels(*agent), pictures, loss_of) > 40);
}

TEST_CASE("MR.Q: a sequence that begins with the last row of an episode has the least priority") {
  const AgentPtr agent = make_mrq_agent(small_mrq());
  ReplicaContext context(nullptr, 3);
  const auto replica = fresh(*agent, of_states(*agent), context);
  TensorMap batch = random_sequences(of_states(*agent), 6, 5);
  batch["reward"].mul_(50); // errors far above 1
  batch["first"].zero_();
  batch["first"][2][1] = 1;
  batch["weight"] = at::ones({6});
  replica->step_fn(context, batch);
  const at::Tensor priorities = replica->priorities();
  for (std::int64_t row = 0; row < 6; ++row)
    CHECK((priorities[row].item<double>() == 1) == (row == 2));
}

TEST_CASE("MR.Q: steps after the end of an episode count in no loss") {
  MrqConfig config = small_mrq();
  config.features.termination_weight = 0.1;
  const AgentPtr agent = make_mrq_agent(config);
  const auto losses = [&](const TensorMap& batch) {
    ReplicaContext context(nullptr, 3);
    const auto replica = fresh(*agent, of_states(*agent), context);
    Metrics metrics = replica->step_fn(context, batch);
    return std::pair{metrics["dynamics_loss"] + metrics["reward_loss"]
                         + metrics["termination_loss"],
                     metrics["critic_loss"]};
  };
  TensorMap batch = random_sequences(of_states(*agent), 6, 7);
  batch["first"].zero_().select(1, 2).fill_(1);
  const auto before = losses(batch);
  const auto after = [&](const char* name, std::int64_t row) {
    TensorMap other = copied(batch);
    other[name].select(1, row).add_(0.25);
    return losses(other);
  };
  CHECK(after("observation", 1) != before);
  CHECK(after("reward", 0) != before);
  CHECK(after("discount", 0) != before);
  CHECK(after("observation", 2) == before);
  CHECK(after("observation", 3) == before);
  CHECK(after("reward", 1) == before);
  CHECK(after("action", 1) == before);
  CHECK(after("discount", 1) == before);
}

TEST_CASE("MR.Q: the value encoder and all targets change only at the end of each period") {
  MrqConfig config = small_mrq();
  config.period = 3;
  const AgentPtr agent = make_mrq_agent(config);
  ReplicaContext context(nullptr, 3);
  const auto replica = fresh(*agent, of_states(*agent), context);
  const auto same = [](const TensorMap& a, const std::string& of, const TensorMap& b,
                       const std::string& other) {
    bool all = true;
    for (const auto& [name, tensor] : a)
      if (name.starts_with(of) && b.contains(other + name.substr(of.size())))
        all &= at::equal(tensor, b.at(other + name.substr(of.size())));
    return all;
  };
  for (std::uint64_t update = 0; update < 6; ++update) {
    CAPTURE(update);
    const TensorMap before = copied(replica->parameters());
    const at::Tensor acting = replica->policy_parameters();
    TensorMap batch = random_sequences(of_states(*agent), 6, update);
    batch["weight"] = at::ones({6});
    replica->step_fn(context, batch);
    const TensorMap after = replica->parameters();
    for (const std::string trained : {"state.", "model.", "critic1.", "policy."})
      CHECK_FALSE(same(before, trained, after, trained));
    const bool end = update % 3 == 2;
    CHECK(same(before, "target.", after, "target.") != end);
    if (end) {
      CHECK(same(after, "target.", after, ""));
      CHECK(same(before, "target.state.", after, "previous.state."));
    } else {
      CHECK(same(before, "previous.", after, "previous."));
    }
    // The acting policy has the encoder of the values, and the newest policy.
    const at::Tensor now = replica->policy_parameters();
    CHECK(at::equal(acting[0], now[0]) != end);
    CHECK_FALSE(at::equal(acting[-1], now[-1]));
    CHECK(replica->priorities().ge(1).all().item<bool>());
  }
}

TEST_CASE("MR.Q: only the gradients of the critics are clipped") {
  MrqConfig config = small_mrq();
  config.weight_decay = 0;
  config.gradient_norm = 1e-12; // so small that Adam, which divides by at least 1e-8, hardly moves
  const AgentPtr agent = make_mrq_agent(config);
  ReplicaContext context(nullptr, 3);
  const auto replica = fresh(*agent, of_states(*agent), context);
  const TensorMap before = copied(replica->parameters());
  replica->step_fn(context, random_sequences(of_states(*agent), 6, 7));
  const TensorMap after = replica->parameters();
  const auto moved = [&](const std::string& name) {
    return (after.at(name) - before.at(name)).abs().max().item<double>();
  };
  CHECK(moved("critic1.output.bias") < 1e-6);
  CHECK(moved("critic2.layer0.weight") < 1e-6);
  for (const char* name : {"state.output.weight", "model.output.weight", "policy.output.weight"})
    CHECK(moved(name) > 1e-4);
}

TEST_CASE("MR.Q: the shift of a picture does not tell the shift of the next picture") {
  // All observations are one picture, so features differ only by their shifts. If these are
  // independent, no prediction is closer to its own target than to those of other rows, and InfoNCE
  // is at least log(rows) on average.
  MrqConfig config = small_mrq();
  config.features.state_features = config.features.pair_features = 24;
  config.features.pair_layers = {24};
  config.features.encoder_channels = 8;
  config.features.shift_pixels = 2;
  config.features.horizon = 1;
  config.features.contrast_weight = 1;
  config.period = 10;
  config.encoder_learning_rate = 2e-3;
  config.batch_size = 32;
  const AgentPtr agent = make_mrq_agent(config);
  const replay::TransitionSpec spec = of_pixels(*agent);
  ReplicaContext context(nullptr, 3);
  const auto replica = fresh(*agent, spec, context);
  TensorMap batch = random_sequences(spec, config.batch_size, 1);
  batch["first"].zero_();
  const at::Tensor picture = batch["observation"][0][0].clone();
  batch["observation"].copy_(picture);
  batch["action"].zero_();
  double late = 0;
  for (int update = 0; update < 300; ++update) {
    const double loss = replica->step_fn(context, batch).at("contrast_loss");
    late += update < 200 ? 0 : loss / 100;
  }
  CHECK(late > std::log(32.0) - 0.1);
}

TEST_CASE(
    "MR.Q: the reward scale is the mean absolute reward, with less weight on earlier periods") {
  MrqConfig config = small_mrq();
  config.period = 2;
  config.scale_rewards = true;
  const AgentPtr agent = make_mrq_agent(config);
  ReplicaContext context(nullptr, 3);
  const auto replica = fresh(*agent, of_states(*agent), context);
  TensorMap batch = random_sequences(of_states(*agent), 6, 7);
  batch["first"].zero_();
  batch["reward"].fill_(-4); // the scale is valid from the first batch
  CHECK(replica->step_fn(context, batch).at("reward_scale") == doctest::Approx(4));
  batch["reward"].fill_(2);
  CHECK(replica->step_fn(context, batch).at("reward_scale") == doctest::Approx(3));
  batch["reward"].zero_();
  replica->step_fn(context, batch);
  CHECK(replica->step_fn(context, batch).at("reward_scale")
        == doctest::Approx(0.98 * 6 / (0.98 * 2 + 2)));
  const auto unrewarded = fresh(*agent, of_states(*agent), context);
  CHECK(unrewarded->step_fn(context, batch).at("reward_scale")
        == doctest::Approx(1e-3)); // the minimum
  config.scale_rewards = false;
  const AgentPtr unscaled = make_mrq_agent(config);
  const auto plain = fresh(*unscaled, of_states(*unscaled), context);
  batch["reward"].fill_(-4);
  for (int update = 0; update < 3; ++update)
    CHECK(plain->step_fn(context, batch).at("reward_scale") == 1);
}

TEST_CASE(
    "MR.Q: norms have no parameters, weights are initialised for ReLU, and biases start at 0") {
  MrqConfig config = small_mrq();
  config.policy_layers = {200, 100};
  const AgentPtr agent = make_mrq_agent(config);
  ReplicaContext context(nullptr, 3);
  const auto replica = fresh(*agent, of_states(*agent), context);
  const TensorMap parameters = replica->parameters();
  for (const auto& [name, tensor] : parameters)
    CHECK(name.find("norm") == std::string::npos);
  CHECK(parameters.at("policy.layer1.bias").abs().max().item<double>() == 0);
  const double bound = std::sqrt(12. / (200 + 100));
  const double largest = parameters.at("policy.layer1.weight").abs().max().item<double>();
  CHECK(largest <= bound);
  CHECK(largest > 0.99 * bound);
}

TEST_CASE("MR.Q: the best action of a bandit is learned from states and from pixels") {
  for (const bool pixels : {false, true}) {
    CAPTURE(pixels);
    MrqConfig config = small_mrq();
    config.features.encoder_layers = {24};
    config.features.pair_layers = {24};
    config.features.state_features = config.features.pair_features = 24;
    config.features.shift_pixels = 2;
    config.features.horizon = 1;
    config.features.reward_weight = 1; // the reward alone can be predicted
    config.features.contrast_weight = 0;
    config.policy_layers = config.critic_layers = {24, 20};
    config.batch_size = pixels ? 32 : 64;
    config.period = 10;
    config.preactivation_weight = 0.05; // else the policy saturates before the critics are right
    config.encoder_learning_rate = config.policy_learning_rate = 2e-3;
    config.critic_learning_rate = 2e-3;
    const AgentPtr agent = make_mrq_agent(config);
    const replay::TransitionSpec spec = pixels ? of_pixels(*agent) : of_states(*agent);
    ReplicaContext context(nullptr, 3);
    const auto replica = fresh(*agent, spec, context);
    for (std::uint64_t i = 0; i < 1000; ++i) {
      TensorMap batch = random_sequences(spec, config.batch_size, 10 * i);
      batch["first"].zero_();
      batch["discount"].zero_();
      batch["reward"] = -(batch["action"] - 0.3).square().sum(2);
      replica->step_fn(context, batch);
    }
    const auto policy = agent->make_policy(spec);
    const at::Tensor flat = replica->policy_parameters();
    policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
    const at::Tensor seen = random_sequences(spec, 8, 3)["observation"].select(1, 0).contiguous();
    at::Tensor actions = at::empty({8, 2});
    policy->act(bytes_of(seen), 8, {actions.mutable_data_ptr<float>(), 16});
    CHECK((actions - 0.3).square().mean().sqrt().item<double>() < 0.15);
  }
}
