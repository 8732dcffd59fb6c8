// Properties that hold for every agent.
#include "tests/doctest_torch.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>

#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/learner/agents/fed_replica.hpp"
#include "tests/learner/agents/small_agent.hpp"
#include "tests/learner/replicas.hpp"

using namespace troupe;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

std::unique_ptr<Replica> built(const AgentKind& kind, const Agent& agent, ReplicaContext& context) {
  at::set_num_threads(1); // tests run in parallel
  auto replica = agent.make_replica(small_transitions(kind));
  replica->build(context);
  return replica;
}

std::unique_ptr<Policy> published(const AgentKind& kind, const Agent& agent, Replica& replica) {
  auto policy = agent.make_policy(small_transitions(kind));
  const at::Tensor flat = replica.policy_parameters();
  policy->load({flat.const_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
  return policy;
}

/// The initial memory of a policy for `rows` episodes.
std::vector<float> states_of(const Policy& policy, std::size_t rows) {
  return std::vector<float>(rows * static_cast<std::size_t>(policy.state_size()));
}

/// Random observations [rows, …].
at::Tensor observations(const AgentKind& kind, std::int64_t rows, std::uint64_t seed) {
  const env::ArraySpec observation = small_transitions(kind).observation();
  std::vector<std::int64_t> shape = observation.shape;
  shape.insert(shape.begin(), rows);
  return kind.states ? uniform(shape, seed) : uniform(shape, seed, 0, 255.99).to(at::kByte);
}

/// Whether the agent learns from transitions with a critic.
bool has_critic(const AgentKind& kind) {
  return !small_transitions(kind).is_sequence()
         && std::find(kind.metrics.begin(), kind.metrics.end(), "critic_loss")
                != kind.metrics.end();
}

/// One-step episodes in which the best action is 0.3, or choice 2.
TensorMap bandit(const AgentKind& kind, std::uint64_t seed) {
  TensorMap batch = random_batch(small_transitions(kind), 64, seed);
  const at::Tensor& action = batch["action"];
  batch["reward"] = kind.actions == ActionKind::choice ? action.select(1, 0).eq(2).to(at::kFloat)
                                                       : -(action - 0.3).square().sum(1);
  batch["discount"] = at::zeros({64});
  return batch;
}

} // namespace

TEST_CASE("Every agent is found by its name, and its defaults cover its keys") {
  std::set<std::string> names;
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    CHECK(names.insert(kind.name).second);
    CHECK(find_agent(kind.name) == &kind);
    CHECK_FALSE(kind.help.empty());
    REQUIRE(kind.options != nullptr);
    CHECK(static_cast<std::size_t>(kind.options->field_count()) == kind.defaults.size());
    for (const auto& [key, text] : kind.defaults)
      CHECK(kind.options->FindFieldByName(key) != nullptr);
  }
  CHECK(agent_kinds().front().name == "d4pg");
  CHECK(find_agent("dqn5") == nullptr);
}

TEST_CASE("Every agent's policy accepts the parameters that its replica publishes") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const AgentPtr agent = small_agent(kind);
    CHECK(agent->batch_size() == 16);
    ReplicaContext context(nullptr, 1);
    const auto replica = built(kind, *agent, context);
    const auto policy = published(kind, *agent, *replica);
    const at::Tensor observation = observations(kind, 7, 3);
    const bool chooses = kind.actions == ActionKind::choice;
    std::vector<float> actions(chooses ? 7 : 14);
    std::vector<float> states = states_of(*policy, 7);
    policy->act(bytes_of(observation), 7, actions, states);
    for (const float action : actions) {
      CHECK(std::abs(action) <= (chooses ? 3 : 1));
      CHECK((!chooses || action == std::floor(action)));
    }
    std::vector<float> fewer(static_cast<std::size_t>(policy->parameter_count() - 1));
    CHECK_THROWS_WITH_AS(policy->load(fewer), doctest::Contains(kind.name.c_str()),
                         std::invalid_argument);
    fewer.resize(fewer.size() + 1, NAN);
    CHECK_THROWS_AS(policy->load(fewer), std::invalid_argument);
  }
}

TEST_CASE("Equal seeds and batches give equal parameters, also after a restart") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const AgentPtr agent = small_agent(kind);
    const auto learn = [&](int restart_at) {
      ReplicaContext context(nullptr, 4);
      auto replica = built(kind, *agent, context);
      for (int i = 0; i < 21; ++i) {
        if (i == restart_at) {
          const TensorMap parameters = copied(replica->parameters());
          const TensorMap state = copied(replica->optimizer_state());
          ReplicaContext other(nullptr, 99);
          replica = built(kind, *agent, other);
          replica->load(parameters, state);
        }
        replica->step_fn(
            context, random_batch(small_transitions(kind), kBatch, static_cast<std::uint64_t>(i)));
      }
      return copied(replica->parameters());
    };
    const TensorMap whole = learn(-1);
    CHECK(equal(whole, learn(-1)));
    CHECK(equal(whole, learn(7)));
  }
}

TEST_CASE(
    "Replicas stay equal to each other, and without noise they equal one on the whole batch") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const bool draws = kind.name == "sac"; // it draws samples at every update
    const std::string quiet = kind.name == "td3"   ? "target_noise: 0"
                              : !kind.states       ? "noise_start: 0 noise_end: 0 shift_pixels: 0"
                              : kind.name == "mrq" ? "target_noise: 0 contrast_weight: 0"
                              : kind.name == "ppo" ? "minibatches: 1 normalise_advantages: false"
                                                   : "";
    const AgentPtr agent = small_agent(kind, "precision: \"float64\" " + quiet);
    const auto learn = [&](int replicas, int which) {
      Replicas run(
          [&] {
            return std::make_unique<FedReplica>(agent->make_replica(small_transitions(kind)),
                                                small_transitions(kind));
          },
          replicas);
      run.run(40);
      return copied(run.replica(which).parameters());
    };
    const TensorMap halves = learn(2, 0);
    CHECK(equal(halves, learn(2, 1)));
    if (draws)
      continue;
    for (const auto& [name, tensor] : learn(1, 0)) {
      CAPTURE(name);
      const double scale = tensor.abs().max().item<double>();
      CHECK((tensor - halves.at(name)).abs().max().item<double>() < 1e-5 * scale);
    }
  }
}

TEST_CASE("The best action of a bandit is learned within 600 updates") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    if (!has_critic(kind))
      continue;
    const bool chooses = kind.actions == ActionKind::choice;
    const std::string rates =
        chooses ? "learning_rate: 1e-3 target_period: 10"
                : "policy_learning_rate: 1e-3 critic_learning_rate: 3e-3 target_update: 0.05 ";
    const AgentPtr agent = small_agent(
        kind, rates
                  + (kind.name == "d4pg"  ? "value_minimum: -4 value_maximum: 1"
                     : kind.name == "sac" ? "temperature: 0.05 temperature_learning_rate: 0"
                                          : ""));
    ReplicaContext context(nullptr, 1);
    const auto replica = built(kind, *agent, context);
    for (std::uint64_t i = 0; i < 600; ++i)
      replica->step_fn(context, bandit(kind, 1000 + 10 * i));
    std::vector<float> actions(chooses ? 20 : 40);
    published(kind, *agent, *replica)->act(bytes_of(observations(kind, 20, 5)), 20, actions);
    const double best = chooses ? 2 : 0.3;
    double square = 0;
    for (const float action : actions)
      square += (action - best) * (action - best) / static_cast<double>(actions.size());
    CHECK(std::sqrt(square) < 0.15);
  }
}

TEST_CASE("Row weights scale the loss, and weighted rows get priorities") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    if (!has_critic(kind))
      continue;
    const AgentPtr agent = small_agent(kind);
    ReplicaContext context(nullptr, 1);
    const auto replica = built(kind, *agent, context);
    TensorMap batch = random_batch(small_transitions(kind), kBatch, 1);
    replica->step_fn(context, batch);
    CHECK_FALSE(replica->priorities().defined());
    batch["weight"] = at::zeros({kBatch});
    CHECK(replica->step_fn(context, batch).at("critic_loss") == 0);
    const at::Tensor priorities = replica->priorities();
    REQUIRE(priorities.defined());
    CHECK((priorities.scalar_type() == at::kDouble));
    CHECK(priorities.numel() == kBatch);
    CHECK(priorities.ge(0).all().item<bool>());
  }
}

TEST_CASE("A batch that does not fit is refused with its tensor, and a NaN with its update") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    ReplicaContext context(nullptr, 1);
    const auto replica = built(kind, *small_agent(kind), context);
    TensorMap batch = random_batch(small_transitions(kind), kBatch, 1);
    batch.erase("reward");
    CHECK_THROWS_WITH_AS(replica->step_fn(context, batch), doctest::Contains("'reward'"),
                         std::invalid_argument);
    const at::Tensor reward = random_batch(small_transitions(kind), kBatch, 1)["reward"];
    batch["reward"] = reward.unsqueeze(-1);
    CHECK_THROWS_WITH_AS(replica->step_fn(context, batch), doctest::Contains("'reward'"),
                         std::invalid_argument);
    batch["reward"] = at::full_like(reward, NAN);
    CHECK_THROWS_WITH_AS(replica->step_fn(context, batch), doctest::Contains("update 1"),
                         std::runtime_error);
    if (kind.name == "d4pg" || !has_critic(kind)) // the distribution or the gradient is bounded
      continue;
    batch["reward"] = at::full_like(reward, 1e38);
    CHECK_THROWS_AS(
        {
          for (int i = 0; i < 50; ++i)
            replica->step_fn(context, batch);
        },
        std::runtime_error);
  }
}

TEST_CASE("An update reports the metrics that its agent's kind declares") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    ReplicaContext context(nullptr, 1);
    const auto replica = built(kind, *small_agent(kind), context);
    const Metrics got = replica->step_fn(context, random_batch(small_transitions(kind), kBatch, 1));
    CHECK(got.size() == kind.metrics.size());
    for (const std::string& name : kind.metrics)
      CHECK(got.contains(name));
  }
}

TEST_CASE("Observations that an agent does not support are refused") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const AgentPtr agent = small_agent(kind);
    replay::TransitionSpec pixels = small_transitions(kind);
    pixels.frame = {"pixels", env::ElementType::uint8, {1, 40, 40}};
    const AgentSetting setting{.picture = AgentSetting::Picture{.height = 40, .width = 40},
                               .recorded = true};
    google::protobuf::DynamicMessageFactory factory;
    const auto& options = *factory.GetPrototype(kind.options);
    if (kind.states) {
      CHECK(kind.check(options, {.picture = {}, .recorded = true}).empty());
    } else {
      REQUIRE(kind.check(options, {.picture = {}, .recorded = true}).size() == 1);
      CHECK(kind.check(options, {.picture = {}, .recorded = true})[0].key == "environment.pixels");
      replay::TransitionSpec states = small_transitions(kind);
      states.frame = {"state", env::ElementType::float32, {5}};
      CHECK_THROWS_WITH_AS(agent->make_policy(states), doctest::Contains("uint8 [channels"),
                           std::invalid_argument);
      CHECK_THROWS_WITH_AS(agent->make_replica(states), doctest::Contains(kind.name.c_str()),
                           std::invalid_argument);
    }
    if (kind.pixels) {
      CHECK(kind.check(options, setting).empty());
      CHECK(agent->make_policy(pixels) != nullptr);
    } else {
      REQUIRE(kind.check(options, setting).size() == 1);
      CHECK(kind.check(options, setting)[0].key == "environment.pixels");
      CHECK_THROWS_WITH_AS(agent->make_policy(pixels), doctest::Contains("float32 [n]"),
                           std::invalid_argument);
      CHECK_THROWS_WITH_AS(agent->make_replica(pixels), doctest::Contains(kind.name.c_str()),
                           std::invalid_argument);
    }
  }
}

/// Transitions with a picture and a vector in each observation.
replay::TransitionSpec both(const AgentKind& kind) {
  replay::TransitionSpec transitions = small_transitions(kind);
  transitions.frame = {"pixels", env::ElementType::uint8, {1, 40, 40}};
  transitions.stack = 2;
  transitions.vectors = {{"state", env::ElementType::float32, {3}}};
  return transitions;
}

TEST_CASE("Agents learn from pixels and states together or refuse them by name") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    const AgentPtr agent = small_agent(kind);
    const replay::TransitionSpec spec = both(kind);
    if (!kind.both) {
      for (const char* part : {"environment.observations", "'state'", kind.name.c_str()}) {
        CHECK_THROWS_WITH_AS(agent->make_policy(spec), doctest::Contains(part),
                             std::invalid_argument);
        CHECK_THROWS_WITH_AS(agent->make_replica(spec), doctest::Contains(part),
                             std::invalid_argument);
      }
      continue;
    }
    at::set_num_threads(1);
    ReplicaContext context(nullptr, 1);
    const auto replica = agent->make_replica(spec);
    replica->build(context);
    const TensorMap batch = random_batch({spec}, kBatch, 1);
    replica->step_fn(context, batch);
    TensorMap bad = batch;
    bad["observation/state"] = at::full_like(batch.at("observation/state"), NAN);
    CHECK_THROWS_WITH_AS(replica->step_fn(context, bad), doctest::Contains("observation/state"),
                         std::runtime_error);
    bad.erase("observation/state");
    CHECK_THROWS_WITH_AS(replica->step_fn(context, bad), doctest::Contains("observation/state"),
                         std::invalid_argument);

    // Frames and vectors by row give the same actions as whole observations, and the actions depend
    // on both.
    const auto policy = agent->make_policy(spec);
    std::vector<float> parameters(static_cast<std::size_t>(policy->parameter_count()));
    const at::Tensor drawn = uniform({policy->parameter_count()}, 6);
    std::copy_n(drawn.const_data_ptr<float>(), parameters.size(), parameters.data());
    policy->load(parameters);
    std::vector<std::byte> observation(spec.observation_bytes());
    const auto act = [&] {
      std::vector<float> whole(static_cast<std::size_t>(spec.action_size)), split(whole);
      auto state = states_of(*policy, 1);
      policy->act(observation, 1, whole, state);
      state = states_of(*policy, 1);
      const std::byte* frames[] = {observation.data(), observation.data() + spec.frame.bytes()};
      const std::byte* vectors[] = {observation.data() + spec.vector_offset(0)};
      policy->act({.frames = frames,
                   .frame_bytes = spec.frame.bytes(),
                   .batch = 1,
                   .vectors = vectors,
                   .state = state},
                  split);
      CHECK(whole == split);
      return whole;
    };
    std::set<std::vector<float>> seen{act()};
    for (int i = 0; i < 60; ++i) {
      const float state[3] = {std::sin(static_cast<float>(i)) * 3e3F, static_cast<float>(i) * 1e2F,
                              std::cos(static_cast<float>(i)) * 3e3F};
      std::memcpy(observation.data() + spec.vector_offset(0), state, sizeof state);
      seen.insert(act());
    }
    CHECK(seen.size() > 1);
    const float infinite = INFINITY;
    std::memcpy(observation.data() + spec.vector_offset(0), &infinite, sizeof infinite);
    std::vector<float> actions(static_cast<std::size_t>(spec.action_size));
    auto state = states_of(*policy, 1);
    CHECK_THROWS_WITH_AS(policy->act(observation, 1, actions, state),
                         doctest::Contains("NaN or infinity"), std::runtime_error);
  }
}

TEST_CASE("Agents explore with noise, policy samples or random choices as scheduled") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    if (!has_critic(kind))
      continue;
    const AgentPtr agent = small_agent(
        kind, kind.name == "sac"   ? ""
              : kind.name == "dqn" ? "epsilon_start: 1 epsilon_end: 0.1 epsilon_steps: 100"
                                   : "noise_start: 0.1 noise_end: 0 noise_steps: 100");
    ReplicaContext context(nullptr, 1);
    const auto replica = built(kind, *agent, context);
    const auto policy = published(kind, *agent, *replica);
    constexpr std::size_t kRows = 2000;
    const auto size = static_cast<std::size_t>(small_transitions(kind).action_size);
    const at::Tensor row = observations(kind, 1, 3);
    const std::vector<const std::byte*> frames(kRows, bytes_of(row).data());
    const Observations observations{frames, row.nbytes(), kRows};
    ActingRandom random{std::mt19937_64(7)};
    const std::vector<ActingRandom*> randoms(kRows, &random);
    std::vector<float> mode(size * kRows);
    policy->act(observations, mode);
    const auto explored = [&](std::int64_t steps) {
      std::vector<float> actions(size * kRows);
      policy->explore(observations, {.steps = steps, .total_lanes = kRows, .random = randoms},
                      actions);
      return actions;
    };
    const auto deviation = [&](std::int64_t steps) {
      const auto actions = explored(steps);
      double square = 0;
      for (std::size_t i = 0; i < actions.size(); ++i)
        square +=
            (actions[i] - mode[i]) * (actions[i] - mode[i]) / static_cast<double>(actions.size());
      return std::sqrt(square);
    };
    if (kind.actions == ActionKind::choice) {
      const auto others = [&](std::int64_t steps) { // share of choices other than the best
        const auto actions = explored(steps);
        double count = 0;
        for (std::size_t i = 0; i < actions.size(); ++i)
          count += actions[i] == mode[i] ? 0 : 1;
        return count / kRows;
      };
      CHECK(others(0) == doctest::Approx(0.75).epsilon(0.1)); // one of 4 choices is the best
      CHECK(others(50) == doctest::Approx(0.55 * 0.75).epsilon(0.1));
      CHECK(others(1000) == doctest::Approx(0.1 * 0.75).epsilon(0.3));
    } else if (kind.name == "sac") { // near the start: a deviation of about 1 before tanh
      CHECK(deviation(0) == doctest::Approx(0.63).epsilon(0.15));
      CHECK(deviation(1000) == doctest::Approx(deviation(0)).epsilon(0.1));
    } else {
      CHECK(deviation(0) == doctest::Approx(0.1).epsilon(0.1));
      CHECK(deviation(50) == doctest::Approx(0.05).epsilon(0.1));
      CHECK(deviation(1000) == 0);
    }
  }
}

TEST_CASE("An agent refuses action types that it does not support, by name") {
  for (const AgentKind& kind : agent_kinds()) {
    CAPTURE(kind.name);
    replay::TransitionSpec other = small_transitions(kind);
    if (kind.actions == ActionKind::any)
      continue;
    other.action_choices = kind.actions == ActionKind::choice ? std::vector<std::int64_t>{}
                                                              : std::vector<std::int64_t>{0, 3};
    for (const auto& agent : {small_agent(kind)}) {
      CHECK_THROWS_WITH_AS(agent->make_policy(other), doctest::Contains(kind.name.c_str()),
                           std::invalid_argument);
      CHECK_THROWS_WITH_AS(agent->make_replica(other), doctest::Contains(kind.name.c_str()),
                           std::invalid_argument);
    }
  }
}
