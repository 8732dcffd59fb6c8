#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include "learner/agents/agent_kinds.hpp"
#include "learner/agents/sac/sac.hpp"
#include "learner/agents/spherical/return_scale.hpp"
#include "learner/nn/kernels/rounded_product.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/fed_replica.hpp"
#include "tests/learner/agents/finite_differences.hpp"
#include "tests/learner/replicas.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

const replay::TransitionSpec kSpherical =
    stored_by(*make_sac_agent({.spherical = true}), state_spec(5, 2));

SacConfig spherical(int critics = 2) {
  return {.policy_layers = {6},
          .critic_layers = {8},
          .temperature = 0.01,
          .target_entropy = -0.5,
          .batch_size = 16,
          .blocks = {.policy_blocks = 1, .critic_blocks = 2, .normalise_observations = true},
          .spherical = true,
          .critics = critics,
          .atoms = 11};
}

std::unique_ptr<Replica> built_spherical(const Agent& agent, ReplicaContext& context) {
  at::set_num_threads(1); // tests run in parallel
  auto replica = agent.make_replica(kSpherical);
  replica->build(context);
  return replica;
}

/// The largest difference between 1 and the length of a weight vector over an output's inputs.
double off_sphere(const TensorMap& parameters) {
  double most = 0;
  for (const auto& [name, tensor] : parameters)
    if (name.ends_with(".weight") && !name.starts_with("target."))
      most = std::max(most, (tensor.norm(2, {1}) - 1).abs().max().item<double>());
  return most;
}

} // namespace

TEST_CASE(
    "Spherical SAC: the gradients of critics and policy match finite differences in float64") {
  for (const int critics : {1, 2}) {
    SacConfig config = spherical(critics);
    config.precision = "float64";
    config.temperature_learning_rate = 0;
    config.critic_learning_rate = config.policy_learning_rate = 1e-12;
    TensorMap batch = random_batch(kSpherical, 6, 5);
    batch["weight"] = uniform({6}, 9, 0.2, 2);
    const auto loss_of = [](Metrics& metrics, const std::string& parameter) {
      return parameter.starts_with("critic")   ? metrics["critic_loss"]
             : parameter.starts_with("policy") ? metrics["policy_loss"]
                                               : 0;
    };
    CHECK(check_gradient(*make_sac_agent(config), kSpherical, batch, loss_of) > 40);
  }
}

TEST_CASE(
    "Spherical SAC: learning with AMX stays close to float32 and continues from a checkpoint") {
  const bool has_amx = multiplies_rounded();
  const auto built = [](const char* precision, ReplicaContext& context) {
    SacConfig config = spherical();
    config.policy_layers = {128};
    config.critic_layers = {160};
    config.precision = precision;
    return built_spherical(*make_sac_agent(config), context);
  };
  ReplicaContext context(nullptr, 4), other(nullptr, 4), third(nullptr, 4);
  const auto rounded = built("bfloat16", context), exact = built("float32", other);
  const auto batch = [](std::uint64_t seed) { return random_batch(kSpherical, 128, seed); };
  for (std::uint64_t update = 0; update < 5; ++update) {
    const Metrics ours = rounded->step_fn(context, batch(update));
    const Metrics theirs = exact->step_fn(other, batch(update));
    for (const char* name : {"critic_loss", "policy_loss"}) {
      CHECK(ours.at(name) == doctest::Approx(theirs.at(name)).epsilon(0.05));
      CHECK((ours.at(name) != theirs.at(name)) == has_amx);
    }
  }
  CHECK(off_sphere(rounded->parameters()) < 1e-5);
  const auto resumed = built("bfloat16", third);
  resumed->load(copied(rounded->parameters()), copied(rounded->optimizer_state()));
  for (std::uint64_t update = 9; update < 12; ++update)
    CHECK(resumed->step_fn(third, batch(update)) == rounded->step_fn(context, batch(update)));
}

TEST_CASE("Spherical SAC: scales start at the published values, those of a head at 1") {
  ReplicaContext context(nullptr, 4);
  const TensorMap parameters = built_spherical(*make_sac_agent(spherical()), context)->parameters();
  const auto all_are = [&](const std::string& name, double value) {
    CAPTURE(name);
    CHECK((parameters.at(name) - value).abs().max().item<double>() < 1e-6);
  };
  for (const auto& [network, width] : {std::pair{"policy.", 6}, {"critic1.", 8}, {"critic2.", 8}}) {
    const std::string prefix = network;
    all_are(prefix + "embed.scale", std::sqrt(2. / width));
    all_are(prefix + "block0.expand.scale", std::sqrt(2. / (4 * width)));
    all_are(prefix + "block0.mix", 1 / std::sqrt(1. * width));
    for (const char* head : {"head0.", "head1."}) { // of the policy: means and deviations
      const std::string at = prefix == "policy." ? prefix + head : prefix;
      all_are(at + "head.scale", 1);
      all_are(at + "output.bias", 0);
    }
  }
}

TEST_CASE("Spherical SAC: the initial weights of different outputs are orthonormal") {
  ReplicaContext context(nullptr, 4);
  const auto replica = built_spherical(*make_sac_agent(spherical()), context);
  int compared = 0;
  for (const auto& [name, weight] : replica->parameters()) {
    if (!name.ends_with(".weight") || name.starts_with("target."))
      continue;
    const std::int64_t outputs = weight.size(0);
    if (outputs > weight.size(1))
      continue;
    CAPTURE(name);
    CHECK((weight.mm(weight.t()) - at::eye(outputs)).abs().max().item<double>() < 1e-5);
    ++compared;
  }
  CHECK(compared == 14);
}

TEST_CASE("Spherical SAC: weights have length 1 after each update") {
  SacConfig config = spherical();
  config.critic_learning_rate = config.policy_learning_rate = 0.05;
  ReplicaContext context(nullptr, 4);
  const auto replica = built_spherical(*make_sac_agent(config), context);
  CHECK(off_sphere(replica->parameters()) < 1e-6);
  for (std::uint64_t i = 0; i < 5; ++i) {
    const TensorMap before = copied(replica->parameters());
    replica->step_fn(context, random_batch(kSpherical, 16, i));
    const TensorMap after = replica->parameters();
    CHECK(off_sphere(after) < 1e-6);
    for (const char* moved :
         {"critic2.block1.expand.weight", "policy.head0.head.weight", "policy.head1.head.weight"})
      CHECK((after.at(moved) - before.at(moved)).abs().max().item<double>() > 1e-3);
  }
}

TEST_CASE("Spherical SAC: a restarted learner continues bit for bit, with its scale and schedule") {
  const AgentPtr agent = make_sac_agent(spherical());
  const LearningRateSchedule falling{.shape = ScheduleShape::polynomial, .total_steps = 10};
  const auto learn = [&](int restart_at) {
    ReplicaContext context(nullptr, 4);
    context.set_learning_rates(falling);
    auto replica = built_spherical(*agent, context);
    for (int i = 0; i < 12; ++i) {
      if (i == restart_at) {
        const TensorMap parameters = copied(replica->parameters());
        const TensorMap state = copied(replica->optimizer_state());
        ReplicaContext other(nullptr, 99);
        other.set_learning_rates(falling);
        replica = built_spherical(*agent, other);
        replica->load(parameters, state);
      }
      replica->step_fn(context, random_batch(kSpherical, 16, static_cast<std::uint64_t>(i)));
    }
    return copied(replica->parameters());
  };
  const TensorMap whole = learn(-1);
  CHECK(equal(whole, learn(-1)));
  CHECK(equal(whole, learn(7)));
}

TEST_CASE(
    "Return scale: it is the deviation of returns, or a fifth of the largest if that is more") {
  ReplicaContext context(nullptr, 4);
  const auto scale_of = [&](std::initializer_list<std::vector<double>> batches) {
    ReturnScale scale(5);
    scale.build();
    for (const std::vector<double>& returns : batches)
      scale.observe(context, at::tensor(returns));
    return scale.value();
  };
  CHECK(scale_of({}) == doctest::Approx(1e-4));
  CHECK(scale_of({{0, 0}}) == doctest::Approx(1e-4)); // no reward yet
  // Rewards of 1 and 2 and, in the next episode, 4, at a discount of 0.5.
  CHECK(scale_of({{1, 2.5, 4}}) == doctest::Approx(std::sqrt(1.5)));
  CHECK(scale_of({{-10, -10, -9}}) == doctest::Approx(2));
  CHECK(scale_of({{0}, {-10}}) == doctest::Approx(5).epsilon(1e-3)); // both count
}

TEST_CASE("Return scale: old batches lose their part of the deviation, the largest return stays") {
  ReplicaContext context(nullptr, 4);
  ReturnScale scale(5);
  scale.build();
  scale.observe(context, at::tensor(std::vector<double>{0, 10}));
  CHECK(scale.value() == doctest::Approx(5));
  const at::Tensor small = at::tensor(std::vector<double>{-1, 1});
  for (int i = 0; i < 5000; ++i)
    scale.observe(context, small);
  CHECK(scale.value() == doctest::Approx(2));
}

TEST_CASE("Spherical SAC: learning does not depend on the unit of rewards") {
  const auto metrics_of = [](double unit) {
    ReplicaContext context(nullptr, 4);
    const auto replica = built_spherical(*make_sac_agent(spherical()), context);
    Metrics metrics;
    for (std::uint64_t i = 0; i < 2; ++i) {
      TensorMap batch = random_batch(kSpherical, 16, i);
      batch["reward"].mul_(unit);
      batch["running_return"].mul_(unit);
      metrics = replica->step_fn(context, batch);
    }
    return metrics;
  };
  const Metrics usual = metrics_of(1), other = metrics_of(1024);
  CHECK(other.at("critic_loss") == doctest::Approx(usual.at("critic_loss")).epsilon(1e-3));
  CHECK(other.at("policy_loss") == doctest::Approx(usual.at("policy_loss")).epsilon(1e-3));
  CHECK(other.at("q_mean") == doctest::Approx(1024 * usual.at("q_mean")).epsilon(1e-3));
}

TEST_CASE("Spherical SAC: replicas on shares of the batch stay equal") {
  const AgentPtr agent = make_sac_agent(spherical());
  at::set_num_threads(1);
  Replicas run(
      [&] { return std::make_unique<FedReplica>(agent->make_replica(kSpherical), kSpherical); }, 2);
  run.run(10);
  CHECK(equal(copied(run.replica(0).parameters()), copied(run.replica(1).parameters())));
}

TEST_CASE("Spherical SAC: the best action of a bandit is learned") {
  SacConfig config = spherical(1);
  config.policy_layers = config.critic_layers = {24};
  config.atoms = 51;
  config.temperature = 0.002;
  config.temperature_learning_rate = 0;
  config.critic_learning_rate = 4e-3;
  config.policy_learning_rate = 1e-3;
  config.batch_size = 64;
  const AgentPtr agent = make_sac_agent(config);
  ReplicaContext context(nullptr, 1);
  // The steps on the sphere must become small.
  context.set_learning_rates({.shape = ScheduleShape::polynomial, .total_steps = 2000});
  const auto replica = built_spherical(*agent, context);
  Metrics metrics;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    TensorMap batch = random_batch(kSpherical, config.batch_size, 1000 + 10 * i);
    batch["discount"].zero_();
    batch["reward"] = -(batch["action"] - 0.3).square().sum(1);
    batch["running_return"] = batch["reward"];
    metrics = replica->step_fn(context, batch);
  }
  const auto policy = agent->make_policy(kSpherical);
  const at::Tensor flat = replica->policy_parameters();
  policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
  at::Tensor actions = at::empty({8, 2});
  policy->act(bytes_of(uniform({8, 5}, 3)), 8, {actions.mutable_data_ptr<float>(), 16});
  CAPTURE(metrics.at("critic_loss"));
  CAPTURE(metrics.at("q_mean"));
  CAPTURE(metrics.at("entropy"));
  CHECK((actions - 0.3).square().mean().sqrt().item<double>() < 0.2);
}

TEST_CASE("Spherical SAC: networks without blocks and weight decay are refused by key") {
  const AgentKind kind = *std::find_if(agent_kinds().begin(), agent_kinds().end(),
                                       [](const AgentKind& one) { return one.name == "sac"; });
  google::protobuf::DynamicMessageFactory factory;
  const auto keys = [&](const std::string& more) {
    const std::unique_ptr<google::protobuf::Message> options(
        factory.GetPrototype(kind.options)->New());
    REQUIRE(google::protobuf::TextFormat::ParseFromString(
        "spherical: true critic_blocks: 2 policy_layers: 6 critic_layers: 8 " + more,
        options.get()));
    std::string found;
    for (const OptionProblem& problem : kind.check(*options, {}))
      found += problem.key + " ";
    return found;
  };
  CHECK(keys("policy_blocks: 1") == "");
  CHECK(keys("policy_blocks: 0") == "policy_blocks ");
  CHECK(keys("policy_blocks: 1 weight_decay: 0.1") == "weight_decay ");
}
