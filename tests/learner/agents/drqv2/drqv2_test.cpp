// Tests of DrQ-v2 alone; agents_test.cpp has the properties of every agent.
#include "tests/doctest_torch.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>

#include "learner/agents/agent_kinds.hpp"
#include "learner/agents/drqv2/drqv2.hpp"
#include "tests/learner/agents/fed_replica.hpp"
#include "tests/learner/agents/finite_differences.hpp"
#include "tests/learner/agents/small_agent.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

Drqv2Config small_drqv2() {
  return {.policy_layers = {12, 10},
          .critic_layers = {12, 10},
          .encoder_channels = 3,
          .feature_size = 6,
          .shift_pixels = 2,
          .precision = "float64",
          .batch_size = kBatch};
}

std::unique_ptr<Replica> built(const Drqv2Config& config, const replay::TransitionSpec& spec,
                               ReplicaContext& context) {
  at::set_num_threads(1); // tests run in parallel
  auto replica = make_drqv2_agent(config)->make_replica(spec);
  replica->build(context);
  return replica;
}

bool moved(const TensorMap& before, const TensorMap& after, const std::string& prefix) {
  for (const auto& [name, tensor] : before)
    if (name.starts_with(prefix) && !at::allclose(tensor, after.at(name), 0, 1e-7))
      return true;
  return false;
}

} // namespace

TEST_CASE("DrQ-v2: the gradients of critics, encoder and policy match finite differences") {
  for (const double noise : {0.0, 0.2})
    for (const char* encoder : {"drq", "stride4"}) {
      CAPTURE(noise);
      CAPTURE(std::string(encoder));
      Drqv2Config config = small_drqv2();
      config.encoder = encoder;
      config.noise = {{.start = noise, .end = noise}};
      config.policy_learning_rate = config.critic_learning_rate = 1e-12; // keeps the parameters
      const std::int64_t size =
          encoder == std::string("drq") ? 17 : 46; // no picture without features
      const replay::TransitionSpec spec = pixel_spec(size, 2, 2);
      TensorMap batch = random_batch(spec, 6, 5);
      batch["discount"] = at::zeros({6}); // the encoder gets no gradient through the target
      batch["weight"] = uniform({6}, 11, 0.5, 1.5);
      const int compared = check_gradient(
          *make_drqv2_agent(config), spec, batch,
          [](Metrics& metrics, const std::string& parameter) {
            return metrics[parameter.starts_with("policy.") ? "policy_loss" : "critic_loss"];
          });
      CHECK(compared >= 50);
    }
}

TEST_CASE("DrQ-v2: only the critics' loss trains the encoder and the critics' trunk") {
  for (const bool of_critics : {false, true}) {
    CAPTURE(of_critics);
    Drqv2Config config = small_drqv2();
    config.critic_learning_rate = of_critics ? 1e-2 : 1e-12;
    config.policy_learning_rate = of_critics ? 1e-12 : 1e-2;
    const replay::TransitionSpec spec = pixel_spec(17, 1, 2);
    ReplicaContext context(nullptr, 3);
    const auto replica = built(config, spec, context);
    const TensorMap before = copied(replica->parameters());
    replica->step_fn(context, random_batch(spec, kBatch, 1));
    const TensorMap after = replica->parameters();
    for (const char* prefix : {"encoder.", "critic.trunk.", "critic1.", "critic2.",
                               "target.critic.trunk.", "target.critic1."})
      CHECK(moved(before, after, prefix) == of_critics);
    CHECK(moved(before, after, "policy.") != of_critics);
    CHECK_FALSE(after.contains("target.encoder.conv0.weight"));
  }
}

TEST_CASE("DrQ-v2: the noise of updates decreases as scheduled") {
  Drqv2Config config = small_drqv2();
  config.shift_pixels = 0;
  config.noise = {{.start = 1, .end = 0, .steps = 10}};
  config.steps_per_update = 2;
  const replay::TransitionSpec spec = pixel_spec(17, 1, 2);
  /// Whether an update after `updates` updates depends on the state of the random generator.
  const auto draws_after = [&](int updates) {
    ReplicaContext context(nullptr, 3);
    const auto first = built(config, spec, context);
    for (int i = 0; i < updates; ++i)
      first->step_fn(context, random_batch(spec, kBatch, static_cast<std::uint64_t>(i)));
    const auto second = built(config, spec, context);
    TensorMap state = copied(first->optimizer_state());
    state["random.state"] += 1;
    second->load(copied(first->parameters()), state);
    const TensorMap batch = random_batch(spec, kBatch, 77);
    first->step_fn(context, batch);
    second->step_fn(context, batch);
    return !equal(first->parameters(), second->parameters());
  };
  CHECK(draws_after(0));
  CHECK(draws_after(4));
  CHECK_FALSE(draws_after(5));
}

TEST_CASE("DrQ-v2: steps_per_update that does not match replay.samples_per_insert is refused") {
  const AgentKind& kind = *find_agent("drqv2");
  google::protobuf::DynamicMessageFactory factory;
  const auto& options = *factory.GetPrototype(kind.options); // batch 256, 2 steps per update
  AgentSetting setting{.picture = AgentSetting::Picture{.height = 84, .width = 84},
                       .samples_per_insert = 128};
  CHECK(kind.check(options, setting).empty());
  setting.samples_per_insert = 32;
  const auto found = kind.check(options, setting);
  REQUIRE(found.size() == 1);
  CHECK(found[0].key == "steps_per_update");
  CHECK(found[0].text == "is 2; it must be batch_size / replay.samples_per_insert, 8");
}

TEST_CASE("DrQ-v2: the position of a square is learned from shifted pixels") {
  Drqv2Config config = small_drqv2();
  config.precision = "float32";
  config.encoder_channels = 8;
  config.policy_learning_rate = config.critic_learning_rate = 2e-3;
  config.noise = {{.start = 0.2, .end = 0.2}};
  const replay::TransitionSpec spec = pixel_spec(20, 1, 1);
  const auto pictures = [](const at::Tensor& right) {
    const at::Tensor x = at::arange(20).view({1, 1, 1, 20});
    const at::Tensor y = at::arange(20).view({1, 1, 20, 1});
    const at::Tensor left = (right * 10 + 2).view({-1, 1, 1, 1});
    return (x.ge(left).logical_and(x.lt(left + 6)).logical_and(y.ge(7)).logical_and(y.lt(13)) * 200)
        .to(at::kByte)
        .contiguous();
  };
  ReplicaContext context(nullptr, 1);
  const auto replica = built(config, spec, context);
  for (std::uint64_t i = 0; i < 300; ++i) {
    TensorMap batch = random_batch(spec, 32, 1000 + 10 * i);
    const at::Tensor right = uniform({32}, 7 + i).gt(0).to(at::kLong);
    batch["observation"] = pictures(right);
    batch["reward"] = -(batch["action"].select(1, 0) - (right - 0.5)).square();
    batch["discount"] = at::zeros({32});
    replica->step_fn(context, batch);
  }
  const auto policy = make_drqv2_agent(config)->make_policy(spec);
  const at::Tensor flat = replica->policy_parameters();
  policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
  std::vector<float> actions(2);
  policy->act(bytes_of(pictures(at::arange(2))), 2, actions);
  CHECK(actions[0] == doctest::Approx(-0.5).epsilon(0.3));
  CHECK(actions[1] == doctest::Approx(0.5).epsilon(0.3));
}

TEST_CASE("DrQ-v2: pictures that do not fit the encoder or the shift are refused by key") {
  const AgentKind& kind = *find_agent("drqv2");
  google::protobuf::DynamicMessageFactory factory;
  const std::unique_ptr<google::protobuf::Message> options(
      factory.GetPrototype(kind.options)->New());
  const auto problems = [&](const std::string& keys, int height, int width) {
    google::protobuf::TextFormat::ParseFromString(keys, options.get());
    return kind.check(*options, {.picture = AgentSetting::Picture{height, width}});
  };
  CHECK(problems("", 15, 15).empty());
  CHECK(problems("", 14, 15).at(0).key == "environment.pixels.height");
  CHECK(problems("encoder: \"stride4\"", 28, 28).empty());
  CHECK(problems("encoder: \"stride4\"", 28, 27).at(0).key == "environment.pixels.width");
  CHECK(problems("shift_pixels: 20", 20, 30).at(0).key == "shift_pixels");
  CHECK(problems("noise_end: 2", 84, 84).at(0).key == "noise_end");
  CHECK_THROWS_WITH_AS(make_drqv2_agent({})->make_replica(pixel_spec(14, 1, 1)),
                       doctest::Contains("drqv2.encoder"), std::invalid_argument);
}
