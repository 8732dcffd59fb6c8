// Tests of DQN alone; agents_test.cpp has the properties of every agent.
#include "tests/doctest_torch.hpp"

#include "learner/agents/dqn/dqn.hpp"
#include "learner/agents/parts/layers.hpp"
#include "tests/learner/agents/fed_replica.hpp"
#include "tests/learner/agents/finite_differences.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

replay::TransitionSpec chooser(env::ArraySpec frame = {"state", env::ElementType::float32, {3}}) {
  return {.frame = std::move(frame), .action_size = 1, .action_choices = {3}};
}

struct Variation {
  const char* name;
  std::function<void(DqnConfig&)> change;
};

std::vector<Variation> variations() {
  return {{"plain", [](DqnConfig&) {}},
          {"double_q", [](DqnConfig& config) { config.double_q = true; }},
          {"dueling", [](DqnConfig& config) { config.dueling = true; }},
          {"noisy", [](DqnConfig& config) { config.noisy = true; }},
          {"atoms",
           [](DqnConfig& config) {
             config.atoms = 21;
             config.value_minimum = -1;
             config.value_maximum = 3;
           }},
          {"all", [](DqnConfig& config) {
             config.double_q = config.dueling = config.noisy = true;
             config.atoms = 21;
             config.value_minimum = -1;
             config.value_maximum = 3;
           }}};
}

DqnConfig small_dqn() {
  return {.layers = {16},
          .double_q = false,
          .learning_rate = 1e-2,
          .target_period = 5,
          .precision = "float64",
          .batch_size = 32};
}

/// Two states in turn. In the first, choice 1 leads to the second without a reward, and the others
/// end the episode with a reward of 0.5. In the second, choice 2 ends it with a reward of 2.
TensorMap chain(std::uint64_t seed) {
  constexpr std::int64_t kRows = 32;
  TensorMap batch = random_batch({chooser()}, kRows, seed);
  const at::Tensor second = uniform({kRows}, seed + 9, 0, 1).gt(0.5);
  const at::Tensor action = batch["action"].select(1, 0);
  batch["observation"] = at::stack({second, ~second, at::ones_like(second)}, 1).to(at::kFloat);
  batch["next_observation"] = at::tensor({1.0F, 0.0F, 1.0F}).repeat({kRows, 1});
  const at::Tensor on = (~second).logical_and(action.eq(1));
  batch["reward"] = at::where(second, action.eq(2).to(at::kFloat) * 2, (~on).to(at::kFloat) * 0.5);
  batch["discount"] = on.to(at::kFloat) * 0.9;
  return batch;
}

} // namespace

TEST_CASE("Every variation of DQN learns to give up a small reward for a later one") {
  for (const Variation& variation : variations()) {
    CAPTURE(std::string(variation.name));
    at::set_num_threads(1);
    DqnConfig config = small_dqn();
    variation.change(config);
    const AgentPtr agent = make_dqn_agent(config);
    ReplicaContext context(nullptr, 3);
    const auto replica = agent->make_replica(chooser());
    replica->build(context);
    Metrics metrics;
    for (std::uint64_t i = 0; i < 400; ++i)
      metrics = replica->step_fn(context, chain(100 * i));
    const auto policy = agent->make_policy(chooser());
    const at::Tensor flat = replica->policy_parameters();
    policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
    const at::Tensor states = at::tensor({0.0F, 1.0F, 1.0F, 1.0F, 0.0F, 1.0F}).view({2, 3});
    std::vector<float> actions(2);
    policy->act({reinterpret_cast<const std::byte*>(states.const_data_ptr<float>()),
                 static_cast<std::size_t>(states.nbytes())},
                2, actions);
    CHECK(actions == std::vector<float>{1, 2});
    CHECK(metrics.at("critic_loss") > 0);
  }
}

TEST_CASE("The gradient of every variation of DQN matches finite differences in float64") {
  for (const Variation& variation : variations()) {
    CAPTURE(std::string(variation.name));
    at::set_num_threads(1);
    DqnConfig config = small_dqn();
    variation.change(config);
    config.layers = {5};
    config.gradient_norm = 0;
    config.learning_rate = 1e-12; // keeps the parameters
    const AgentPtr agent = make_dqn_agent(config);
    const int compared =
        check_gradient(*agent, chooser(), chain(5),
                       [](Metrics& metrics, const std::string&) { return metrics["critic_loss"]; });
    CHECK(compared >= 8);
  }
}

TEST_CASE("Both streams of a dueling network have a hidden layer, which is noisy with the others") {
  DqnConfig config = small_dqn();
  config.layers = {7, 5};
  config.dueling = config.noisy = true;
  ReplicaContext context(nullptr, 3);
  const auto replica = make_dqn_agent(config)->make_replica(chooser());
  replica->build(context);
  const TensorMap parameters = replica->parameters();
  for (const char* stream : {"value", "advantage"})
    for (const char* part : {"weight", "weight_noise"}) {
      CHECK(parameters.at(std::string(stream) + ".hidden." + part).sizes()
            == at::IntArrayRef{5, 7});
      CHECK(parameters.at(std::string(stream) + ".output." + part).size(1) == 5);
    }
  CHECK(parameters.contains("torso.layer0.weight"));
  CHECK_FALSE(parameters.contains("torso.layer1.weight"));
}

TEST_CASE("Exploration decreases along the ladder of environments") {
  DqnConfig config = small_dqn();
  config.epsilon = {.probability = {.start = 0.4, .end = 0.4}, .ladder = 7};
  const auto policy = make_dqn_agent(config)->make_policy(chooser());
  constexpr std::size_t kLanes = 8;
  const at::Tensor state = at::zeros({1, 3});
  const std::vector<const std::byte*> frames(
      kLanes, reinterpret_cast<const std::byte*>(state.const_data_ptr<float>()));
  ActingRandom random{std::mt19937_64(3)};
  const std::vector<ActingRandom*> randoms(kLanes, &random);
  std::vector<float> best(kLanes);
  policy->act({frames, 12, kLanes}, best);
  std::vector<int> other(kLanes);
  for (int i = 0; i < 4000; ++i) {
    std::vector<float> actions(kLanes);
    policy->explore({frames, 12, kLanes}, {.total_lanes = kLanes, .random = randoms}, actions);
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      other[lane] += actions[lane] == best[lane] ? 0 : 1;
  }
  for (const std::size_t lane : {0U, 1U, 3U})
    CHECK(other[lane] / 4000.0
          == doctest::Approx(std::pow(0.4, 1 + static_cast<double>(lane)) * 2 / 3).epsilon(0.15));
  CHECK(other[7] < 20);
}

TEST_CASE(
    "Pictures of MinAtar's and Atari's size are accepted, and smaller ones are refused by size") {
  for (const auto& [encoder, size, least] : {std::tuple{"minatar", 10, 3}, {"nature", 84, 36}}) {
    CAPTURE(std::string(encoder));
    CHECK(least_picture(encoder) == least);
    DqnConfig config = small_dqn();
    config.encoder = encoder;
    config.precision = "float32";
    const AgentPtr agent = make_dqn_agent(config);
    const auto pictures = chooser({"pixels", env::ElementType::uint8, {4, size, size}});
    const auto replica = agent->make_replica(pictures);
    ReplicaContext context(nullptr, 3);
    replica->build(context);
    CHECK(replica->step_fn(context, random_batch({pictures}, 4, 1)).at("critic_loss") > 0);
    const auto small = chooser({"pixels", env::ElementType::uint8, {4, least - 1, 84}});
    CHECK_THROWS_WITH_AS(agent->make_replica(small),
                         doctest::Contains(("at least " + std::to_string(least)).c_str()),
                         std::invalid_argument);
  }
}

TEST_CASE("A batch with an invalid choice is refused, and the error names the row and value") {
  const AgentPtr agent = make_dqn_agent(small_dqn());
  ReplicaContext context(nullptr, 3);
  const auto replica = agent->make_replica(chooser());
  replica->build(context);
  TensorMap batch = chain(1);
  batch["action"][4][0] = 3;
  CHECK_THROWS_WITH_AS(replica->step_fn(context, batch),
                       doctest::Contains("row 4 of batch tensor 'action' is 3.000000"),
                       std::runtime_error);
}
